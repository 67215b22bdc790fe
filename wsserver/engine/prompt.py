"""The prompt for the model, as a fold over the log.

A message stands where its turn began, whatever came in between, so a strict
upstream sees every question before its answer. Calls and results always stand in
pairs. What was cut is gone; a turn that showed nothing leaves only its message,
and a message that was taken back before any model call leaves nothing.

A message that steers joins the turn behind the results that were all in after it
came, else before the last answer, whose model call it joined while that was to be made
again; if it has a turn of its own it stands there alone.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Protocol

import msgspec
import orjson
from msgspec import Raw, Struct

from protocol.content import Content
from protocol.events import (
    CutEvent,
    DoneEvent,
    MessageEvent,
    StartEvent,
    ToolResultEvent,
    UsageEvent,
)

BYTES_PER_TOKEN = 3
"""A low estimate, so that a prompt that is said to fit does fit."""

Message = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


class KeptEntry(Protocol):
    """What the fold reads of an entry of the log."""

    @property
    def kind(self) -> str:
        """The event's wire type."""
        ...

    @property
    def turn(self) -> int:
        """The turn it belongs to; 0 for none."""
        ...

    @property
    def body(self) -> bytes:
        """The encoded frame, for all but text."""
        ...

    def text(self) -> str:
        """Returns the text of a text entry."""
        ...


class _Call(Struct, frozen=True, kw_only=True):
    """What the fold reads of a `tool_call`: the arguments stay as they were written."""

    turn: int
    call: str
    name: str
    arguments: Raw
    batch: int
    upstream_id: str | None = None


class _Segment:
    """One model call's part of a turn: text, then calls, then what steered."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[str, Message] = {}
        self.results: dict[str, str] = {}
        self.steers: list[int] = []
        self.batch: int | None = None

    def answer(self, text: str) -> list[Message]:
        """Returns the assistant's message with its calls, and their results."""
        content = text or ("" if self.calls else "".join(self.refusals))
        out: list[Message] = []
        if content or self.calls:
            out.append({"role": "assistant", "content": content or None})
        if self.calls:
            out[0]["tool_calls"] = list(self.calls.values())
        for call, made in self.calls.items():
            note = self.results.get(call, "The call was cancelled.")
            result = {"role": "tool", "tool_call_id": made["id"], "content": note}
            out.append(result)
        return out


class _Turn:
    def __init__(self, message: int, ids: set[str]) -> None:
        self.message = message
        self._ids = ids  # that calls have, here and in other turns
        self.segments = [_Segment()]
        self.steering: list[int] = []  # came in since the last batch of calls settled
        self.kept_bytes: int | None = None
        self.model_calls: int | None = None
        self.withdrawn = False

    def speaking(self) -> _Segment:
        """Returns where output goes: after calls a new model call has begun."""
        if self.segments[-1].calls:
            self.segments.append(_Segment())
        return self.segments[-1]

    def asking(self, batch: int) -> _Segment:
        """Returns the segment whose calls are those of this batch."""
        if self.segments[-1].batch not in (None, batch):
            self.segments.append(_Segment())
        self.segments[-1].batch = batch
        return self.segments[-1]

    def ask(self, call: str, batch: int, id_: str, name: str, arguments: str) -> None:
        """Takes a call; upstreams use an id again that strict ones take once only."""
        if id_ in self._ids:
            id_ = _NO_NAME.sub("_", call)
        while id_ in self._ids:
            id_ += "_"
        self._ids.add(id_)
        self.asking(batch).calls[call] = _call(id_, name, arguments)

    def settle(self, call: str, note: str) -> None:
        for segment in self.segments:
            if call in segment.calls:
                segment.results[call] = note
        last = self.segments[-1]
        if last.calls.keys() == last.results.keys():
            last.steers += self.steering
            self.steering = []


class PromptFold:
    """Folds entries into the turns of a prompt.

    Attributes:
        waiting: Messages that have not had a turn; no prompt has them.
    """

    def __init__(self) -> None:
        """Begins with nothing."""
        self.waiting: Collection[int] = ()
        self._messages: dict[int, Message] = {}
        self._turns: dict[int, _Turn] = {}
        self._ids: set[str] = set()
        self._own: set[int] = set()  # messages with a turn of their own

    def add(self, entries: Iterable[KeptEntry]) -> None:
        """Takes the next entries of the log."""
        for entry in entries:
            match entry.kind:
                case "message":
                    self._message(_message(entry.body))
                case "start":
                    self._start(_start(entry.body))
                case _:
                    turn = self._turns.get(entry.turn)
                    if turn is not None:
                        _take(turn, entry)

    def messages(
        self, instructions: str | None, context_tokens: int | None
    ) -> list[Message]:
        """Returns the prompt, without its oldest turns where it is too long.

        The newest turn always stays. A turn whose message is no longer kept is
        left out, for it would be an answer without a question.
        """
        head: list[Message] = []
        if instructions:
            head.append({"role": "system", "content": instructions})
        groups = [self._group(turn) for turn in self._turns.values()]
        if context_tokens is not None:
            room = context_tokens * BYTES_PER_TOKEN - _size(head)
            groups = _newest(groups, room)
        for group in groups:
            head += group
        return head

    def _message(self, event: MessageEvent) -> None:
        self._messages[event.seq] = {"role": "user", "content": _content(event.content)}
        turn = None if event.steers is None else self._turns.get(event.steers)
        if turn is not None:
            turn.steering.append(event.seq)

    def _start(self, event: StartEvent) -> None:
        self._turns[event.turn] = _Turn(event.message, self._ids)
        self._own.add(event.message)

    def _group(self, turn: _Turn) -> list[Message]:
        """Returns all messages of a turn."""
        if turn.withdrawn or turn.message not in self._messages:
            return []
        out = [self._messages[turn.message]]
        left, joining = turn.kept_bytes, self._joined(turn.steering)
        for segment in turn.segments:
            text = "".join(segment.texts)
            if left is not None:
                kept = text.encode()[:left]
                left -= len(kept)
                text = kept.decode(errors="ignore")
            if not segment.calls:  # so it is the last one
                out += joining
                joining = []
            out += segment.answer(text)
            out += self._joined(segment.steers)
        return out + joining

    def _joined(self, messages: list[int]) -> list[Message]:
        return [
            self._messages[seq]
            for seq in messages
            if seq not in self._own and seq not in self.waiting
        ]


_message = msgspec.json.Decoder(MessageEvent).decode
_start = msgspec.json.Decoder(StartEvent).decode
_tool_call = msgspec.json.Decoder(_Call).decode
_tool_result = msgspec.json.Decoder(ToolResultEvent).decode
_usage = msgspec.json.Decoder(UsageEvent).decode
_cut = msgspec.json.Decoder(CutEvent).decode
_done = msgspec.json.Decoder(DoneEvent).decode


def _take(turn: _Turn, entry: KeptEntry) -> None:
    """Takes an entry of a turn."""
    match entry.kind:
        case "delta":
            turn.speaking().texts.append(entry.text())
        case "refusal":
            turn.speaking().refusals.append(entry.text())
        case "tool_call":
            made = _tool_call(entry.body)
            id_ = made.upstream_id or made.call
            arguments = bytes(made.arguments).decode()
            turn.ask(made.call, made.batch, id_, made.name, arguments)
        case "tool_result":
            _result(turn, _tool_result(entry.body))
        case "cut":
            kept, known = _cut(entry.body).text.bytes, turn.kept_bytes
            turn.kept_bytes = kept if known is None else min(known, kept)
        case "usage":
            turn.model_calls = _usage(entry.body).model_calls
        case "done":
            interrupted = _done(entry.body).status == "interrupted"
            turn.withdrawn = interrupted and turn.model_calls == 0
        case _:
            pass


def _result(turn: _Turn, event: ToolResultEvent) -> None:
    made = event.invalid
    if made is not None:
        name = _NO_NAME.sub("_", made.name)[:64] or "unknown"
        arguments = _encode({"invalid": made.arguments}).decode()
        turn.ask(event.call, made.batch, made.upstream_id, name, arguments)
    turn.settle(event.call, _output(event.output))


def _newest(groups: list[list[Message]], room: int) -> list[list[Message]]:
    """Returns the newest groups that fit into so many bytes, at least the last."""
    count = 0
    for group in reversed(groups):
        room -= _size(group)
        if count and room < 0:
            break
        count += 1
    return groups[len(groups) - count :]


def _content(content: Content) -> Any:
    """Returns a message's content, which strict upstreams take only if there is any."""
    if isinstance(content, str):
        return content or "(empty message)"
    return msgspec.to_builtins(content)


def _call(upstream_id: str, name: str, arguments: str) -> Message:
    function = {"name": name, "arguments": arguments}
    return {"id": upstream_id, "type": "function", "function": function}


def _output(output: Any) -> str:
    if isinstance(output, str):
        return output or "(no output)"
    return _encode(output).decode()


def _size(messages: list[Message]) -> int:
    return len(orjson.dumps(messages))
