"""Holds one turn to what the protocol says of turns; no I/O, mends nothing."""

from zlib import crc32

from client_demo.load.counted import counted
from client_demo.load.violations import Found
from protocol.content import TextProof
from protocol.events import (
    CutEvent,
    DeltaEvent,
    DoneEvent,
    StartEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
    TurnEvent,
    UsageEvent,
)


class TurnOracle:
    """One turn, from its first event to long after its last.

    Attributes:
        turn: Its id.
        done: Whether it has ended.
    """

    def __init__(self, turn: int, found: Found) -> None:
        """Begins with nothing seen.

        Args:
            turn: Its id.
            found: Told of violations.
        """
        self.turn = turn
        self.done = False
        self._found = found
        self._started = self._used = self._failed = self._was_cut = False
        self._muted = self._skipped = False
        self._owed: DoneEvent | None = None  # its proof fits if a cut follows
        self._text: list[str] = []
        self._calls: dict[str, bool] = {}

    @property
    def text(self) -> bytes:
        """The answer as far as it came and is kept, in UTF-8."""
        return "".join(self._text).encode()

    def mute(self) -> None:
        """The reply to an interrupt came: no more text may, on this connection."""
        self._muted = True

    def skip(self) -> None:
        """Numbers came without what they hold: maybe text that was cut from here."""
        self._skipped = True

    def unmute(self) -> None:
        """Another connection follows."""
        self._muted = False

    def finish(self) -> None:
        """Nothing more comes of it."""
        if self._owed is not None:
            self._prove(self._owed.text, self._owed.seq, "done")

    def take(self, event: TurnEvent) -> None:
        """Takes the next event of this turn."""
        self._order(event)
        match event:
            case StartEvent():
                self._start(event)
            case TextEvent():
                self._add(event)
            case ToolCallEvent():
                self._call(event)
            case ToolResultEvent():
                self._settle(event)
            case UsageEvent():
                self._use(event)
            case TurnErrorEvent():
                self._failed = True
            case CutEvent():
                self._cut(event)
            case DoneEvent():
                self._end(event)
            case _:
                pass

    def _order(self, event: TurnEvent) -> None:
        if not self._started and not isinstance(event, StartEvent):
            self._found("no_start", event.seq, f"turn {self.turn} has no `start`")
            self._started = True
        if self.done and not isinstance(event, (CutEvent, DoneEvent)):
            kind = event.__struct_config__.tag
            self._found("after_done", event.seq, f"`{kind}` after `done`")

    def _use(self, event: UsageEvent) -> None:
        if self._used:
            self._found("second_usage", event.seq, "the turn has its `usage` already")
        self._used = True

    def _start(self, event: StartEvent) -> None:
        self._started = True
        if event.turn != event.seq:
            self._found("bad_start", event.seq, f"its turn is {event.turn}")

    def _add(self, event: TextEvent) -> None:
        if self._muted:
            self._found(
                "text_after_interrupt", event.seq, "the interrupt was replied to before"
            )
        if isinstance(event, DeltaEvent) and not self._was_cut:
            self._text.append(event.text)

    def _call(self, event: ToolCallEvent) -> None:
        if event.call in self._calls:
            self._found("call_unknown", event.seq, f"{event.call} was shown before")
        self._calls[event.call] = False

    def _settle(self, event: ToolResultEvent) -> None:
        settled = self._calls.get(event.call)
        if settled is None and event.status != "invalid":
            self._found("call_unknown", event.seq, f"{event.call} was never shown")
        elif settled:
            self._found("call_settled_twice", event.seq, f"{event.call} had its result")
        self._calls[event.call] = True

    def _cut(self, event: CutEvent) -> None:
        self._was_cut, self._owed = True, None
        self._text = [self.text[: event.text.bytes].decode(errors="ignore")]
        self._prove(event.text, event.seq, "cut")

    def _end(self, event: DoneEvent) -> None:
        if self.done:
            self._found("second_done", event.seq, "the turn had ended already")
            return
        self.done = True
        if not self._used:
            self._found("no_usage", event.seq, "the turn ended without `usage`")
        if self._failed != (event.status == "failed"):
            said = "without" if event.status == "failed" else "after"
            self._found("no_error", event.seq, f"`{event.status}` {said} an `error`")
        for call, settled in self._calls.items():
            if not settled:
                self._found("call_unsettled", event.seq, f"{call} has no result")
        if self._skipped and len(self.text) < event.text.bytes:
            self._owed = event  # who cut what had ended is held to the cut
        else:
            self._prove(event.text, event.seq, "done")

    def _prove(self, proof: TextProof, seq: int, kind: str) -> None:
        text = self.text
        if (len(text), crc32(text)) != (proof.bytes, proof.crc32):
            self._found(
                "wrong_text",
                seq,
                f"{counted(len(text), 'byte')} with CRC-32 {crc32(text)} came; `{kind}` says"
                f" {proof.bytes} with {proof.crc32}",
            )
