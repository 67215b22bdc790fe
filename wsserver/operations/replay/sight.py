"""What the clients of one side were shown: those of a recording, or those of a replay.

Two servers number alike only as long as they stream alike, so what both showed is
compared by milestones: a reply to this command, the end of that turn, so many bytes
of its text. Each side also keeps the protocol's rules: numbers fit, a turn ends once.

A conversation that began anew under its name, as its epoch tells, is another one: it
goes by a *title*, which is its name, with a count from the second one on.
"""

from collections.abc import Callable
from typing import Any, cast

import orjson

from protocol.codec import UnknownFrame, decode_server_frame
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ErrorFrame,
    Goaway,
    Heartbeat,
    Pong,
    Reply,
    ToolRequest,
    Waiting,
    Welcome,
)
from protocol.events import (
    CutEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    SkipEvent,
    StartEvent,
    TextEvent,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
    TurnEvent,
    first_seq,
)
from protocol.fold import ConversationView, GapError
from wsserver.operations.replay.milestones import Key, Milestone
from wsserver.operations.server_frame import Frame

Place = tuple[str | int, ...]
"""Where in a conversation a number is, in words that hold on both sides."""


class Sight:
    """Grows with what the clients of one side send and are sent.

    Attributes:
        reached: The milestones so far, by key.
        views: The conversations as all of the side's clients together have them, by
            title.
        faults: Which rules of the protocol were broken, in words.
        epochs: Each conversation's epoch, by title.
    """

    def __init__(
        self, heard: Callable[[LogEvent, str], None] = lambda event, text: None
    ) -> None:
        """Begins with nothing.

        Args:
            heard: Told of each event once, when the first client has it; and of a
                text the part that no client had before.
        """
        self._heard = heard
        self.reached: dict[Key, Any] = {}
        self.views: dict[str, ConversationView] = {}
        self.faults: list[str] = []
        self.epochs: dict[str, str] = {}
        self._lives: dict[str, int] = {}
        self._opens: dict[tuple[str, str], int | None] = {}
        self._cursors: dict[tuple[str, str], int] = {}
        self._turns: dict[str, dict[int, int]] = {}
        self._done: set[tuple[str, str, int]] = set()
        self._places: dict[str, dict[int, Place]] = {}
        self._numbers: dict[str, dict[Place, int]] = {}
        self._counts: dict[Key, int] = {}
        self._calls: dict[tuple[str, str], str] = {}

    def said(self, connection: str, frame: Frame) -> None:
        """A client sent a frame."""
        if frame.get("type") == "open" and isinstance(frame.get("id"), str):
            self._opens[connection, frame["id"]] = frame.get("after")

    def closed(self, connection: str, code: int | None) -> Milestone:
        """A connection has ended."""
        return self._reach(("closed", connection), code)

    def shown(self, connection: str, frame: Frame) -> Milestone | None:
        """A client was sent a frame; returns what that means, if it is compared."""
        found: Milestone | None = None
        match decode_server_frame(orjson.dumps(frame)):
            case Welcome():
                found = self._reach(("welcome", connection))
            case Reply() as reply:
                found = self._reply(connection, reply)
            case CaughtUp(conversation=name):
                found = self._nth("caught_up", connection, self.title(name))
            case ErrorFrame(code=code):
                found = self._nth("refused", connection, value=code)
            case ToolRequest(conversation=name, turn=turn, call=call, name=tool):
                title = self.title(name)
                said = self.call(title, turn, call)
                self._calls[title, said] = call
                key = ("tool_request", connection, title, said)
                found = self._reach(key, tool)
            case Pong() | Waiting() | Goaway() | AuthExpiring() | Heartbeat():
                pass
            case UnknownFrame():
                pass
            case event:
                found = self._event(connection, event)
        return found

    # Numbers of one side in words of both

    def title(self, name: str) -> str:
        """Returns the title of the conversation that has the name now."""
        life = self._lives.get(name, 1)
        return name if life == 1 else f"{name} ({life})"

    def title_at(self, name: str, epoch: str) -> str:
        """Returns the title of the one of that epoch; of the present one without any."""
        last = self._lives.get(name, 1)
        titles = [name, *(f"{name} ({life})" for life in range(2, last + 1))]
        return next(
            (title for title in titles if self.epochs.get(title) == epoch), titles[-1]
        )

    def turn(self, title: str, turn: int) -> int:
        """Returns which turn of the conversation it is, from 1, by the id of it."""
        turns = self._turns.setdefault(title, {})
        return turns.setdefault(turn, len(turns) + 1)

    def turn_id(self, title: str, nth: int) -> int | None:
        """Returns the id of a turn by which it is."""
        turns = self._turns.get(title, {})
        return next((turn for turn, place in turns.items() if place == nth), None)

    def call(self, title: str, turn: int, call: str) -> str:
        """Returns a call's id with the turn's place in that of its number."""
        nth, index = self.turn(title, turn), _index(turn, call)
        return call if index is None else f"call of turn {nth}, {index}"

    def call_id(self, title: str, call: str) -> str | None:
        """Returns the id of a call that was asked for, by what `call` says of it."""
        return self._calls.get((title, call))

    def place(self, title: str, seq: int) -> Place | None:
        """Returns where a number is; None if that was not seen."""
        return self._places.get(title, {}).get(seq)

    def number(self, title: str, place: Place) -> int | None:
        """Returns the number that is at a place, of a text the last up to it."""
        numbers = self._numbers.get(title, {})
        if place in numbers or place[0] != "text":
            return numbers.get(place)
        found = [
            seq
            for other, seq in numbers.items()
            if other[:-1] == place[:-1]
            and cast("int", other[-1]) <= cast("int", place[-1])
        ]
        return max(found, default=None)

    # What is shown

    def _reply(self, connection: str, reply: Reply) -> Milestone:
        if reply.ok and isinstance(reply.oldest, int) and reply.conversation:
            self._opened(connection, reply, reply.conversation, reply.oldest)
        value = {
            "ok": reply.ok,
            "outcome": reply.outcome,
            "code": None if reply.error is None else reply.error.code,
            "reason": reply.reason,
            "duplicate": reply.duplicate is True,
        }
        return self._nth("reply", connection, reply.re, value=value)

    def _opened(
        self, connection: str, reply: Reply, conversation: str, oldest: int
    ) -> None:
        if self.epochs.get(self.title(conversation), reply.epoch) != reply.epoch:
            self._lives[conversation] = self._lives.get(conversation, 1) + 1
        title = self.title(conversation)
        after = self._opens.get((connection, reply.re))
        begin = after if reply.outcome == "replay" and after else oldest - 1
        self._cursors[connection, title] = begin
        # What is sent again may be of turns that were done.
        self._done = {done for done in self._done if done[:2] != (connection, title)}
        if reply.epoch is not None:
            self.epochs[title] = reply.epoch
        if title not in self.views:
            self.views[title] = ConversationView(last=begin)

    def _event(self, connection: str, event: LogEvent) -> Milestone | None:
        name = self.title(event.conversation)
        self._fit(connection, event)
        turn = self.turn(name, event.turn) if isinstance(event, TurnEvent) else 0
        self._fold(event, turn)
        key: Key | None = None
        value: Any = None
        match event:
            case TextEvent():
                key, value = ("text", name, turn, _kind(event)), self._bytes(event)
            case MessageEvent(id=sent):
                key = ("message", connection, name, sent)
            case StartEvent(model=model):
                key, value = ("start", connection, name, turn), model
            case ToolCallEvent(call=call, name=tool):
                call = self.call(name, event.turn, call)
                key, value = ("tool_call", connection, name, call), tool
            case ToolResultEvent(call=call, status=status):
                call = self.call(name, event.turn, call)
                key, value = ("tool_result", connection, name, call), status
            case DoneEvent(status=status, reason=reason):
                self._done.add((connection, name, turn))
                key = ("done", connection, name, turn)
                value = {"status": status, "reason": reason}
            case _:
                pass
        return None if key is None else self._reach(key, value)

    def _fit(self, connection: str, event: LogEvent) -> None:
        """Checks the order of numbers, and that nothing follows an end."""
        name, first = self.title(event.conversation), first_seq(event)
        cursor = self._cursors.get((connection, name))
        if cursor is None:
            self._fault(connection, event, "came before the reply to `open`")
        elif first != cursor + 1:
            self._fault(connection, event, f"does not fit after {cursor}")
        self._cursors[connection, name] = event.seq
        if isinstance(event, TurnEvent) and not isinstance(event, CutEvent):
            nth = self.turn(name, event.turn)
            if (connection, name, nth) in self._done:
                self._fault(connection, event, "came after its turn was done")

    def _fault(self, connection: str, event: LogEvent, what: str) -> None:
        kind = _tag(event)
        numbers = f"{first_seq(event)} to {event.seq}"
        self.faults.append(
            f"{connection}, {event.conversation}: `{kind}` with the numbers {numbers}"
            f" {what}"
        )

    def _fold(self, event: LogEvent, turn: int) -> None:
        name, first = self.title(event.conversation), first_seq(event)
        view = self.views.setdefault(name, ConversationView(last=first - 1))
        if first > view.last + 1:
            view.last = first - 1  # in no frame of ours; the fault is noted
        text = self._text(event)
        try:
            new = view.apply(event)
        except GapError:
            return  # merged otherwise than for another client, who gets the rest
        if new and not isinstance(event, SkipEvent):
            self._heard(event, self._text(event)[len(text) :])
            place = self._place(event, turn)
            self._places.setdefault(name, {})[event.seq] = place
            self._numbers.setdefault(name, {})[place] = event.seq

    def _place(self, event: LogEvent, turn: int) -> Place:
        if isinstance(event, TextEvent):
            return ("text", turn, _kind(event), self._bytes(event))
        kind = _tag(event)
        key = ("place", self.title(event.conversation), kind, turn)
        self._counts[key] = self._counts.get(key, 0) + 1
        return (kind, turn, self._counts[key])

    def _bytes(self, event: TextEvent) -> int:
        return len(self._text(event).encode())

    def _text(self, event: LogEvent | TextEvent) -> str:
        """Returns the text that the event is a piece of, as far as it has come."""
        if not isinstance(event, TextEvent):
            return ""
        turn = self.views[self.title(event.conversation)].turns.get(event.turn)
        text = None if turn is None else turn.growing(event)
        return "" if text is None else str(text)

    def _nth(
        self, kind: str, connection: str, *more: str, value: Any = None
    ) -> Milestone:
        key = (kind, connection, *more)
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._reach((*key, self._counts[key]), value)

    def _reach(self, key: Key, value: Any = None) -> Milestone:
        if key[0] == "text":
            value = max(value, self.reached.get(key, 0))
        self.reached[key] = value
        return Milestone(key, value)


def _kind(event: TextEvent) -> str:
    if isinstance(event, ToolDeltaEvent):
        return f"tool_delta {event.call.rpartition('.')[2]}"
    return _tag(event)


def _tag(event: LogEvent | TextEvent) -> str:
    return cast("str", type(event).__struct_config__.tag)


def _index(turn: int, call: str) -> str | None:
    """Returns which call of its turn it is; what follows on that tells the epoch."""
    begin, dot, rest = call.partition(".")
    return rest.partition(".")[0] if dot and begin == f"call_{turn}" else None
