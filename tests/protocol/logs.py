"""Logs as a server writes them, for the tests of merge and fold."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from protocol.codec import decode_server_frame, encode
from protocol.content import Config, Timing
from protocol.events import (
    ConfigEvent,
    CutEvent,
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    ReasoningEvent,
    RefusalEvent,
    SkipEvent,
    StartEvent,
    TakeoverEvent,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
    TurnErrorEvent,
    UsageEvent,
)
from protocol.merge import merge
from protocol.text import proof
from tests.protocol.texts import whole_text

AT = "2026-01-02T03:04:05.678Z"


class Log:
    """Writes the log of one conversation, as a server does."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.turn = 0
        self.answer: dict[int, list[tuple[int, str]]] = {}

    @property
    def next(self) -> int:
        return self.events[-1].seq + 1 if self.events else 1

    def add(self, kind: type[Any], **members: Any) -> None:
        self.events.append(kind(conversation="c", seq=self.next, **members))

    def of_turn(self, kind: type[Any], **members: Any) -> None:
        if kind is DeltaEvent:
            self.answer[self.turn].append((self.next, members["text"]))
        self.add(kind, turn=self.turn, **members)

    def call(self, call: str, index: int = 0, arguments: Any = None) -> None:
        self.of_turn(
            ToolCallEvent,
            call=call,
            name="t",
            arguments=arguments,
            batch=0,
            index=index,
            deadline_at=AT,
        )

    def result(self, call: str, status: str = "ok") -> None:
        self.of_turn(ToolResultEvent, call=call, status=status, output=1, by="ann")

    def fail(self) -> None:
        self.of_turn(TurnErrorEvent, code="internal", message="x", retryable=True)

    def message(self, content: str = "Hi") -> int:
        self.add(MessageEvent, id="m", role="user", content=content, by="ann", at=AT)
        return self.events[-1].seq

    def start(self) -> None:
        message = self.message()
        self.turn = self.next
        self.answer[self.turn] = []
        self.of_turn(StartEvent, message=message, model="m", request_id="r", at=AT)

    def say(self, *pieces: str) -> None:
        for piece in pieces:
            self.of_turn(DeltaEvent, text=piece)

    def cut(self, keep_through: int, turn: int | None = None) -> None:
        self.turn = turn or self.turn
        pieces = self.answer[self.turn]
        kept = [piece for piece in pieces if piece[0] <= keep_through]
        self.answer[self.turn] = kept
        text = proof("".join(piece[1] for piece in kept))
        self.of_turn(CutEvent, keep_through=keep_through, by="ann", text=text)

    def usage(self) -> None:
        self.of_turn(
            UsageEvent, input_tokens=1, output_tokens=2, estimated=False, model_calls=1
        )

    def done(self, status: str = "completed") -> None:
        text = proof("".join(piece[1] for piece in self.answer[self.turn]))
        timing = Timing(queue_ms=1, total_ms=2)
        self.of_turn(DoneEvent, status=status, text=text, timing=timing)


def one_turn(*pieces: str) -> Log:
    """A log whose first turn, number 2, has begun and said `pieces`."""
    log = Log()
    log.start()
    log.say(*pieces)
    return log


kinds = st.sampled_from(
    [DeltaEvent, DeltaEvent, DeltaEvent, ReasoningEvent, RefusalEvent]
)


@st.composite
def logs(draw: st.DrawFn) -> list[LogEvent]:
    """Any log that a server may write, unmerged."""
    log = Log()
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            log.add(ConfigEvent, config=Config(model=draw(whole_text)))
        log.start()
        _talk(draw, log)
        if draw(st.booleans()):
            log.cut(draw(st.integers(log.turn, log.next - 1)))
        log.usage()
        if draw(st.booleans()):
            log.fail()
        log.done(draw(st.sampled_from(["completed", "interrupted", "failed"])))
        if draw(st.booleans()):
            log.cut(draw(st.integers(log.turn, log.next - 1)))
    return log.events


def _talk(draw: st.DrawFn, log: Log) -> None:
    calls = [f"{log.turn}.{n}" for n in range(draw(st.integers(0, 2)))]
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.integers(0, 7)):
            case 0 if calls:
                call = draw(st.sampled_from(calls))
                log.of_turn(ToolDeltaEvent, call=call, name="t", text=draw(whole_text))
            case 1:
                log.add(SkipEvent)
            case 2:
                log.message()
            case 3:
                log.of_turn(TakeoverEvent, model=draw(whole_text))
            case _:
                log.of_turn(draw(kinds), text=draw(whole_text))
    for index, call in enumerate(calls):
        log.call(call, index, {"n": index})
    log.say(*draw(st.lists(whole_text, max_size=3)))
    for call in calls:
        log.result(call, draw(st.sampled_from(["ok", "timeout", "invalid"])))
    log.say(*draw(st.lists(whole_text, max_size=3)))


@st.composite
def merged_somehow(draw: st.DrawFn, events: Sequence[LogEvent]) -> list[LogEvent]:
    """Merges `events` in batches that end anywhere, up to any size, as they travel."""
    out: list[LogEvent] = []
    rest = list(events)
    while rest:
        size = draw(st.integers(1, 6))
        out += merge(rest[:size], max_bytes=draw(st.sampled_from([1, 5, 1000])))
        rest = rest[size:]
    return [decode_server_frame(encode(event)) for event in out]  # type: ignore[misc]
