"""Whether two sides show the same in the end, by the protocol's rules.

A text that was stopped may be longer on one side: that depends on when. All else has
to be the same: messages, turns and their ends, calls and their results.
"""

from typing import Any

from protocol.events import MessageEvent
from protocol.fold import ConversationView
from protocol.view import TurnView
from wsserver.operations.replay.sight import Sight


def first_difference(recorded: Sight, live: Sight, *, texts: bool) -> str | None:
    """Returns in what the replay differs; None if it does not.

    Args:
        recorded: What the recording shows.
        live: What was shown now.
        texts: Whether texts are compared, too.
    """
    for name, view in recorded.views.items():
        found = live.views.get(name, ConversationView())
        difference = _conversation(view, found, texts=texts)
        if difference is not None:
            return f"{name}: {difference}"
    return None


def unproven(sight: Sight) -> str | None:
    """Returns which text is not what the server says that it keeps, if any."""
    for name, view in sight.views.items():
        for nth, turn in enumerate(view.turns.values(), 1):
            if turn.proven is False:
                return f"{name}: the text of turn {nth} is not what the server keeps"
    return None


def _conversation(
    was: ConversationView, now: ConversationView, *, texts: bool
) -> str | None:
    entries, others = was.timeline, now.timeline
    for place, entry in enumerate(entries):
        if place >= len(others):
            return f"{_title(entry)} is not there"
        other = others[place]
        if isinstance(entry, TurnView) != isinstance(other, TurnView):
            return f"{_title(entry)} was there, now {_title(other)}"
        for what, (before, after) in _compared(entry, other, texts=texts).items():
            if before != after:
                return f"{_title(entry)}: {what} was {before!r}, is {after!r}"
    if len(others) > len(entries) and all(
        not isinstance(entry, TurnView) or entry.status for entry in entries
    ):
        return f"{_title(others[len(entries)])} was not there"
    return None


def _compared(was: Any, now: Any, *, texts: bool) -> dict[str, tuple[Any, Any]]:
    if isinstance(was, MessageEvent):
        found: dict[str, tuple[Any, Any]] = {"its id": (was.id, now.id)}
        if texts:
            found["its content"] = (was.content, now.content)
        return found
    if was.status is None:
        return {}  # the recording ended before it did
    found = {
        "its model": (was.model, now.model),
        "its status": (was.status, now.status),
        "its reason": (was.reason, now.reason),
        "its error": (_code(was), _code(now)),
        "its calls": (_calls(was), _calls(now)),
    }
    if texts:
        stopped = was.status != "completed"
        for kind in ("text", "reasoning", "refusal"):
            before, after = getattr(was, kind), getattr(now, kind)
            if not (stopped and _begins(before, after)):
                found[f"its {kind}"] = (before, after)
    return found


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _code(turn: TurnView) -> str | None:
    return None if turn.error is None else turn.error.code


def _calls(turn: TurnView) -> list[tuple[str | None, str]]:
    return [(call.name, call.status) for call in turn.calls.values()]


def _title(entry: MessageEvent | TurnView) -> str:
    if isinstance(entry, TurnView):
        return f"the turn with the number {entry.turn}"
    return f"the message `{entry.id}`"
