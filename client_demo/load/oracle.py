"""Holds one conversation to the protocol, frame by frame as they came.

It is no client: it mends nothing, asks for nothing and skips nothing. After a
violation it goes on from what it saw, so that one fault is told once. No I/O.
"""

from zlib import crc32

from msgspec import UnsetType

from client_demo.load.turn_oracle import TurnOracle
from client_demo.load.violations import Found
from protocol.codec import encode
from protocol.control import CaughtUp, Reply, ToolRequest
from protocol.events import (
    DoneEvent,
    LogEvent,
    MessageEvent,
    SkipEvent,
    StartEvent,
    TextEvent,
    TurnEvent,
    first_seq,
)


class Oracle:
    """All that one client saw of one conversation, over all its connections.

    Attributes:
        last: The last number that came.
        epoch: Of the log; None before the first `open` was replied to.
        digests: The CRC-32 of each event that is neither text nor a `skip`, by its
            number.
        turns: By their ids.
    """

    def __init__(self, found: Found) -> None:
        """Begins with nothing seen.

        Args:
            found: Told of violations.
        """
        self.last = 0
        self.epoch: str | None = None
        self.digests: dict[int, int] = {}
        self.turns: dict[int, TurnOracle] = {}
        self._found = found
        self._missing: set[int] = set()
        self._running: int | None = None
        self._messages: dict[str, int] = {}
        self._message_seqs: set[int] = set()
        self._accepted: set[str] = set()
        self._requested: set[str] = set()

    @property
    def running(self) -> bool:
        """Whether a turn has begun that did not end."""
        return self._running is not None

    def opened(self, reply: Reply, after: int | None) -> None:
        """Takes the verdict of an `open`.

        Args:
            reply: It says ok.
            after: The cursor that was given; None for none.
        """
        for turn in self.turns.values():
            turn.unmute()
        self._requested.clear()
        head, oldest = _number(reply.head, 0), _number(reply.oldest, 1)
        if after is None:
            self.last = oldest - 1
        elif reply.outcome == "reset" or reply.epoch != self.epoch:
            why = reply.reason or f"epoch {self.epoch} became {reply.epoch}"
            self._found("log_reset", after, f"opened after {after}: {why}")
            self._forget()
            self.last = oldest - 1
        elif head < after:
            self._found("head_behind", after, f"the head is {head}, {after} was seen")
        self.epoch = reply.epoch

    def event(self, event: LogEvent) -> None:
        """Takes the next event, as it came."""
        if not self._numbers(event):
            return
        if not isinstance(event, (TextEvent, SkipEvent)):
            self.digests[event.seq] = crc32(encode(event))
        match event:
            case MessageEvent():
                self._message(event)
            case TurnEvent():
                self._turn(event)
            case SkipEvent() if self._running in self.turns:
                self.turns[self._running].skip()
            case _:
                pass

    def accepted(self, send: str) -> None:
        """A `send` was replied to with ok: its message has to be in the log."""
        self._accepted.add(send)

    def interrupted(self, turn: int) -> None:
        """The reply to an interrupt came on this connection."""
        if turn in self.turns:
            self.turns[turn].mute()

    def caught_up(self, frame: CaughtUp) -> None:
        """The replay is said to be over."""
        if frame.seq > self.last:
            self._found(
                "early_caught_up", frame.seq, f"the last that came is {self.last}"
            )

    def requested(self, frame: ToolRequest) -> None:
        """This connection was asked to run a tool."""
        if frame.call in self._requested and not frame.redelivered:
            self._found("request_twice", None, f"{frame.call} was asked for before")
        self._requested.add(frame.call)

    def finish(self) -> None:
        """The conversation is over: says what never came."""
        for send in sorted(self._accepted - self._messages.keys()):
            self._found("message_lost", None, f"the message of {send} never came")
        for turn in self.turns.values():
            turn.finish()
            if not turn.done:
                self._found("no_done", turn.turn, f"turn {turn.turn} never ended")

    def _forget(self) -> None:
        """Another log begins; what was accepted into the old one stays owed."""
        self.digests.clear()
        self.turns.clear()
        self._messages.clear()
        self._message_seqs.clear()
        self._missing.clear()
        self._running = None

    def _numbers(self, event: LogEvent) -> bool:
        """Checks the numbers; says whether the event is news."""
        first, seq = first_seq(event), event.seq
        if first == self.last + 1 and first <= seq:
            self.last = seq
            return True
        numbers = f"{first} to {seq}" if first != seq else str(seq)
        if first > seq:
            self._found("bad_frame", seq, f"the numbers {numbers} run backwards")
            return False
        if first > self.last + 1:
            self._found("gap", seq, f"{numbers} came after {self.last}")
            self._missing.update(range(self.last + 1, first))
            self.last = seq
            return True
        if seq in self._missing:
            self._missing.difference_update(range(first, seq + 1))
            self._found("reordered", seq, f"{numbers} came after {self.last}")
            return False
        if isinstance(event, DoneEvent) and self._ended(event.turn):
            self._found("second_done", seq, "the turn had ended already")
        self._found("repeated", seq, f"{numbers} came after {self.last}")
        self.last = max(self.last, seq)
        return False

    def _ended(self, turn: int) -> bool:
        return turn in self.turns and self.turns[turn].done

    def _message(self, event: MessageEvent) -> None:
        if event.id in self._messages:
            self._found(
                "message_twice",
                event.seq,
                f"{event.id} is at {self._messages[event.id]} already",
            )
        self._messages[event.id] = event.seq
        self._message_seqs.add(event.seq)

    def _turn(self, event: TurnEvent) -> None:
        turn = self.turns.get(event.turn)
        if turn is None:
            turn = self.turns[event.turn] = TurnOracle(event.turn, self._found)
        if isinstance(event, StartEvent):
            if self._running is not None:
                self._found("two_turns", event.seq, f"turn {self._running} still runs")
            if event.message not in self._message_seqs:
                self._found("bad_start", event.seq, f"no message {event.message}")
            self._running = event.turn
        turn.take(event)
        if turn.done and self._running == event.turn:
            self._running = None


def _number(value: int | UnsetType, absent: int) -> int:
    return absent if isinstance(value, UnsetType) else value
