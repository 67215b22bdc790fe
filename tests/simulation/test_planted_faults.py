"""The simulation can fail: faults are planted in the server, and it sees each.

Each stands for a kind that a review might miss. If one of them goes unseen, it is
the simulation that is broken.
"""

from typing import Any

import pytest

from protocol.events import DoneEvent
from tests.simulation.planting import Plant, check_seen
from wsserver.connections import dispatch, views
from wsserver.connections.gates import Held
from wsserver.connections.gathering import Gathering
from wsserver.connections.verdict import Verdict
from wsserver.connections.viewer import View
from wsserver.engine.prompt import PromptFold
from wsserver.engine.tools import Batch
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns import directory
from wsserver.turns.receipts import Receipts

MOST_SESSIONS = 2_000


def loses_a_delta(patch: pytest.MonkeyPatch) -> None:
    """One piece of text in fifty never reaches the log."""
    real, count = ConversationLog.append_text, [0]

    def append_text(log: ConversationLog, kind: str, *rest: Any) -> None:
        count[0] += 1
        if count[0] % 50 or kind != "delta":
            real(log, kind, *rest)

    patch.setattr(ConversationLog, "append_text", append_text)


def says_done_twice(patch: pytest.MonkeyPatch) -> None:
    real = ConversationLog.append

    def append(log: ConversationLog, event: Any, **members: Any) -> Any:
        made = real(log, event, **members)
        return real(log, event, **members) if event is DoneEvent else made

    patch.setattr(ConversationLog, "append", append)


def resumes_one_too_late(patch: pytest.MonkeyPatch) -> None:
    """The cursor is off by one where the client resumes."""
    real = views.verdict

    def verdict(cursor: Any, **log: Any) -> Verdict:
        judged = real(cursor, **log)
        if cursor is None or judged.after >= log["head"]:
            return judged
        return Verdict(outcome="replay", after=judged.after + 1)

    patch.setattr(views, "verdict", verdict)


def resumes_one_too_early(patch: pytest.MonkeyPatch) -> None:
    real = views.verdict

    def verdict(cursor: Any, **log: Any) -> Verdict:
        judged = real(cursor, **log)
        if not cursor or not judged.after:
            return judged
        return Verdict(outcome="replay", after=judged.after - 1)

    patch.setattr(views, "verdict", verdict)


def does_not_wake(patch: pytest.MonkeyPatch) -> None:
    """A view that is woken by the last event of a turn sleeps on."""
    real = View._wake

    def wake(view: View) -> None:
        entries = view.log.tail(view.log.head)
        if not (entries and entries[-1].kind == "done"):
            real(view)

    patch.setattr(View, "_wake", wake)


def replies_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Held, "may_leave", lambda held, settled: True)


def shows_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    stored = property(lambda log: log.head, lambda log, seq: None)
    patch.setattr(ConversationLog, "stored", stored)


def answers_before_it_is_made(patch: pytest.MonkeyPatch) -> None:
    """An `open` is answered before the store knows the conversation."""

    async def until_kept(log: ConversationLog) -> None:
        return None

    for room in (dispatch, directory):
        patch.setattr(room, "until_kept", until_kept)


def forgets_receipts(patch: pytest.MonkeyPatch) -> None:
    """What is sent again is applied again."""
    patch.setattr(Receipts, "find", lambda receipts, principal, command: None)


def settles_a_call_twice(patch: pytest.MonkeyPatch) -> None:
    real = Batch.settle

    def settle(batch: Batch, *args: Any) -> Any:
        outcome, actions = real(batch, *args)
        return outcome, actions * 2

    patch.setattr(Batch, "settle", settle)


def speaks_after_an_interrupt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(View, "mute", lambda view, turn: None)


def gathers_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Text that is held back stays there, though the turn has ended."""
    patch.setattr(Gathering, "through", lambda gathering, after, *rest: after)


def leaves_a_call_without_a_result(patch: pytest.MonkeyPatch) -> None:
    """The prompt has a call, and not what came of it."""
    real = PromptFold.messages

    def messages(fold: PromptFold, *args: Any) -> list[Any]:
        return [m for m in real(fold, *args) if m["role"] != "tool"]

    patch.setattr(PromptFold, "messages", messages)


def moves_what_was_answered(patch: pytest.MonkeyPatch) -> None:
    """What joined a turn stands behind the answer to it."""
    real = PromptFold._group

    def group(fold: PromptFold, turn: Any) -> list[Any]:
        steering, turn.steering = turn.steering, []
        messages = [*real(fold, turn), *fold._joined(steering)]
        turn.steering = steering
        return messages

    patch.setattr(PromptFold, "_group", group)


def tells_what_was_cut(patch: pytest.MonkeyPatch) -> None:
    """The model is told text that the user has cut."""
    real = PromptFold._group

    def group(fold: PromptFold, turn: Any) -> list[Any]:
        turn.kept_bytes = None
        return real(fold, turn)

    patch.setattr(PromptFold, "_group", group)


PLANTS: list[Plant] = [
    loses_a_delta,
    says_done_twice,
    resumes_one_too_late,
    resumes_one_too_early,
    does_not_wake,
    replies_before_it_is_stored,
    shows_before_it_is_stored,
    answers_before_it_is_made,
    forgets_receipts,
    settles_a_call_twice,
    speaks_after_an_interrupt,
    gathers_for_ever,
    leaves_a_call_without_a_result,
    moves_what_was_answered,
    tells_what_was_cut,
]


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_it_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_seen(plant, monkeypatch, range(MOST_SESSIONS))
