"""What must be true of every log at the end, by itself and of what the model said."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from zlib import crc32

import msgspec

from protocol.events import (
    CutEvent,
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    RefusalEvent,
    StartEvent,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
    TurnErrorEvent,
    TurnEvent,
    UsageEvent,
)
from protocol.fold import ConversationView
from tests.simulation.lives import Life
from tests.simulation.model import Model

Report = Callable[[str], None]
_ASKING = ("user", "tool")
_decode = msgspec.json.Decoder(LogEvent).decode


class Log:
    """One life of a conversation, whole.

    Attributes:
        name: What clients call the conversation.
        life: What was stored.
        first: The first number.
        base: Up to which number it was copied from another.
        events: One for each number.
    """

    def __init__(self, life: Life, base: int = 0) -> None:
        quoted = msgspec.json.encode(life.name)
        self.name = life.name
        self.life = life
        self.first = life.first
        self.base = base
        self.events: list[LogEvent] = [
            _decode(entry.part(seq - 1, seq).frame(quoted))
            for entry in life.entries
            for seq in range(entry.first, entry.seq + 1)
        ]
        self._whole: dict[tuple[bool, int], ConversationView] = {}

    @property
    def head(self) -> int:
        """The last number."""
        return self.first - 1 + len(self.events)

    @property
    def trimmed(self) -> bool:
        """Whether it, or what it was copied from, has lost something."""
        unheard = self.life.trims and self.life.ended_at is not None
        return self.life.oldest > 1 or unheard

    def whole(self, with_tool_deltas: bool, after: int = 0) -> ConversationView:
        """Returns what a client shows that has seen all after a number."""
        key = (with_tool_deltas, after)
        if key not in self._whole:
            view = ConversationView(last=after)
            for event in self.events[max(0, after + 1 - self.first) :]:
                if isinstance(event, ToolDeltaEvent) and not with_tool_deltas:
                    view.last = event.seq
                else:
                    view.apply(event)
            self._whole[key] = view
        return self._whole[key]


class _Turn:
    """What the log has of a turn."""

    def __init__(self, start: StartEvent) -> None:
        self.start = start
        self.text: list[tuple[int, str]] = []
        self.before = 0  # pieces of text before the last result of a tool
        self.cut: CutEvent | None = None
        self.refused = False
        self.usages = 0
        self.error: TurnErrorEvent | None = None
        self.calls: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.done: DoneEvent | None = None

    def take(self, event: TurnEvent, wrong: Report) -> None:
        if self.done is not None and not isinstance(event, CutEvent):
            wrong(f"after done: {event}")
        match event:
            case DeltaEvent():
                self.text.append((event.seq, event.text))
            case RefusalEvent():
                self.refused = True
            case CutEvent():
                self.cut = event
                self._prove(event, wrong)
            case UsageEvent():
                self.usages += 1
            case TurnErrorEvent():
                self.error = event
            case ToolCallEvent():
                self.calls[event.call] += 1
            case ToolResultEvent():
                self.results[event.call] += event.invalid is None
                self.before = len(self.text)
            case DoneEvent():
                self.done = event
                self._prove(event, wrong)
            case _:
                pass

    def kept(self, begin: int = 0) -> str:
        """Returns what is kept of the answer, from some piece of it on."""
        through = 2**60 if self.cut is None else self.cut.keep_through
        return "".join(text for seq, text in self.text[begin:] if seq <= through)

    def _prove(self, event: CutEvent | DoneEvent, wrong: Report) -> None:
        kept = self.kept().encode()
        if (len(kept), crc32(kept)) != (event.text.bytes, event.text.crc32):
            wrong(f"it proves another text than {kept!r}: {event}")


def check_log(log: Log, model: Model, report: Report) -> None:
    """Checks a log for itself, and against what the model said."""
    wrong = partial(_say, log.name, report)
    messages, turns = _read(log, wrong)
    answered = Counter(turn.start.message for turn in turns)
    for seq, message in messages.items():
        joined = message.steers is not None and not answered[seq]
        ended = log.life.ended_at is not None and not answered[seq]
        if seq <= log.base:
            _check_copied(seq, answered[seq], turns, log.base, wrong)
        elif answered[seq] != 1 and not joined and not ended:
            wrong(f"{answered[seq]} turns answer {message}")
    for turn in turns:
        if turn.done is None and log.life.ended_at is not None:
            continue
        if turn.done is None:
            wrong(f"turn {turn.start.turn} never ended")
        elif turn.start.message not in messages:
            if turn.start.message >= log.first:
                wrong(f"turn {turn.start.turn} answers no message")
        else:
            _check_counts(turn, turn.done, wrong)
            asked = messages[turn.start.message].content
            _check_said(turn, turn.done, asked, model, wrong)
    if not log.trimmed:
        _check_order(messages, turns, model, wrong)


def _check_copied(
    seq: int, answered: int, turns: list["_Turn"], base: int, wrong: Report
) -> None:
    late = [t.start.turn for t in turns if t.start.message == seq <= base < t.start.seq]
    if answered > 1 or late:
        wrong(f"{answered} turns answer {seq}, which was copied, later {late}")


def _say(name: str, report: Report, what: str) -> None:
    report(f"log of {name}: {what}")


def _read(log: Log, wrong: Report) -> tuple[dict[int, MessageEvent], list[_Turn]]:
    messages: dict[int, MessageEvent] = {}
    turns: dict[int, _Turn] = {}
    newest: _Turn | None = None
    for number, event in enumerate(log.events, log.first):
        if event.seq != number:
            wrong(f"number {number} is missing: {event}")
        if isinstance(event, MessageEvent):
            messages[event.seq] = event
        elif isinstance(event, StartEvent):
            if newest is not None and newest.done is None:
                wrong(f"two turns run at once: {event}")
            if event.turn != event.seq:
                wrong(f"a turn is not named after its start: {event}")
            newest = turns[event.turn] = _Turn(event)
        elif isinstance(event, TurnEvent) and event.turn in turns:
            turns[event.turn].take(event, wrong)
        elif isinstance(event, CutEvent) and event.turn < log.first:
            pass  # the fork of a log that has lost the turn
        elif isinstance(event, TurnEvent):
            wrong(f"an event of a turn that did not start: {event}")
    return messages, list(turns.values())


def _check_counts(turn: _Turn, done: DoneEvent, wrong: Report) -> None:
    number = turn.start.turn
    if turn.usages != 1:
        wrong(f"turn {number} has {turn.usages} usages")
    if turn.calls != turn.results or any(n != 1 for n in turn.calls.values()):
        wrong(f"turn {number} has calls {turn.calls} and results {turn.results}")
    if (turn.error is not None) != (done.status == "failed"):
        wrong(f"turn {number} ended {done} with {turn.error}")


def _check_said(
    turn: _Turn, done: DoneEvent, asked: object, model: Model, wrong: Report
) -> None:
    request = turn.start.request_id
    said, told = model.said[request], "".join(text for _, text in turn.text)
    if not said.startswith(told) or (done.status == "completed" and said != told):
        wrong(f"turn {turn.start.turn} has {told!r} of what was said: {said!r}")
    for prompt in model.prompts[request][:1]:
        if [m["content"] for m in prompt if m["role"] == "user"].count(asked) != 1:
            wrong(f"turn {turn.start.turn} is not about {asked!r}: {prompt}")


def _check_order(
    messages: dict[int, MessageEvent], turns: list[_Turn], model: Model, wrong: Report
) -> None:
    """Checks that a prompt holds the turn before it as that was, and what was kept."""
    asked = [
        (turn, prompts)
        for turn in turns
        if (prompts := model.prompts[turn.start.request_id])
    ]
    for (turn, prompts), (following, later) in pairwise(asked):
        cut_later = turn.cut is not None and turn.cut.seq > following.start.seq
        if cut_later or turn.done is None or turn.done.reason == "server_restarted":
            continue  # a crash may take back what a model was asked
        last, prompt = _asking(prompts[-1]), later[0]
        question = {"role": "user", "content": messages[turn.start.message].content}
        places = [n for n, m in enumerate(prompt) if m["role"] in _ASKING]
        if question not in prompt or len(places) < len(last):
            wrong(f"turn {turn.start.turn} was asked {last}, and then {prompt}")
            continue
        begin, end = prompt.index(question), places[len(last) - 1]
        after = next((n for n in places if n > end), len(prompt))
        said = [
            m["content"] or "" for m in prompt[begin:after] if m["role"] == "assistant"
        ]
        answer = turn.kept(turn.before)
        if not turn.refused and "".join(said) != turn.kept():
            wrong(f"turn {turn.start.turn} is told as {said}, not {turn.kept()!r}")
        if answer and _asking(prompt)[: len(last)] != last:
            wrong(f"turn {turn.start.turn} was asked {last}, and then {prompt}")
        elif answer and prompt[end + 1]["content"] != answer:
            wrong(f"{answer!r} does not follow on {last[-1]}: {prompt}")


def _asking(prompt: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in prompt if message["role"] in _ASKING]
