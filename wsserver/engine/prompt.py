"""The prompt for the model, as a fold over the log.

A message stands where its turn began, whatever came in between, so a strict
upstream sees every question before its answer. Calls and results always stand in
pairs. What was cut is gone; a turn that showed nothing leaves only its message,
and a message that was taken back before any model call leaves nothing.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
import orjson

from protocol.content import Content
from protocol.events import (
    CutEvent,
    DoneEvent,
    MessageEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)

BYTES_PER_TOKEN = 3
"""A low estimate, so that a prompt that is said to fit does fit."""

Message = dict[str, Any]


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


class _Segment:
    """One model call's part of a turn: text, then calls, then what steered."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[str, Message] = {}
        self.results: dict[str, str] = {}
        self.steers: list[Message] = []
        self.batch: int | None = None

    def messages(self, text: str) -> list[Message]:
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
        return out + self.steers


class _Turn:
    def __init__(self, message: Message | None) -> None:
        self.message = message
        self.segments = [_Segment()]
        self.kept_bytes: int | None = None
        self.model_calls: int | None = None
        self.withdrawn = False

    def messages(self) -> list[Message]:
        if self.withdrawn:
            return []
        out = [] if self.message is None else [self.message]
        left = self.kept_bytes
        for segment in self.segments:
            text = "".join(segment.texts)
            if left is not None:
                kept = text.encode()[:left]
                left -= len(kept)
                text = kept.decode(errors="ignore")
            out += segment.messages(text)
        return out


class PromptFold:
    """Folds entries into the turns of a prompt."""

    def __init__(self) -> None:
        self._messages: dict[int, Message] = {}
        self._turns: dict[int, _Turn] = {}
        self._steering: list[int] = []
        self._turn: _Turn | None = None

    def add(self, entries: Iterable[KeptEntry]) -> None:
        """Takes the next entries of the log."""
        for entry in entries:
            match entry.kind:
                case "delta":
                    self._text(entry)
                case "refusal":
                    self._refusal(entry)
                case "message" | "start" | "tool_call" | "tool_result":
                    self._event(_decoders[entry.kind].decode(entry.body))
                case "cut" | "usage" | "done":
                    self._ending(_decoders[entry.kind].decode(entry.body))
                case _:
                    pass

    def messages(
        self, instructions: str | None, context_tokens: int | None
    ) -> list[Message]:
        """Returns the prompt, without its oldest turns where it is too long.

        The newest turn always stays.
        """
        head: list[Message] = []
        if instructions:
            head.append({"role": "system", "content": instructions})
        groups = [turn.messages() for turn in self._turns.values()]
        if context_tokens is not None:
            room = context_tokens * BYTES_PER_TOKEN - _size(head)
            first = len(groups) - 1
            while first > 0:
                room -= _size(groups[first])
                if room - _size(groups[first - 1]) < 0:
                    break
                first -= 1
            groups = groups[max(first, 0) :]
        for group in groups:
            head += group
        return head

    def _text(self, entry: KeptEntry) -> None:
        self._segment(entry.turn).texts.append(entry.text())

    def _refusal(self, entry: KeptEntry) -> None:
        self._segment(entry.turn).refusals.append(entry.text())

    def _segment(self, number: int) -> _Segment:
        """Returns where output goes: after calls a new model call has begun."""
        turn = self._of(number)
        if turn.segments[-1].calls:
            self._join_steering(turn)
            turn.segments.append(_Segment())
        return turn.segments[-1]

    def _of(self, number: int) -> _Turn:
        """Returns a turn; one whose beginning is no longer kept has no message."""
        turn = self._turns.get(number)
        if turn is None:
            turn = self._turns[number] = self._turn = _Turn(None)
        return turn

    def _event(
        self, event: MessageEvent | StartEvent | ToolCallEvent | ToolResultEvent
    ) -> None:
        match event:
            case MessageEvent():
                content = _content(event.content)
                message = {"role": "user", "content": content}
                self._messages[event.seq] = message
                if event.steers is not None:
                    self._steering.append(event.seq)
            case StartEvent():
                if self._turn is not None:
                    self._join_steering(self._turn, but=event.message)
                self._steering = [s for s in self._steering if s != event.message]
                message = self._messages.pop(event.message, None)
                self._turn = self._turns[event.turn] = _Turn(message)
            case ToolCallEvent():
                made = _call(
                    event.upstream_id or event.call, event.name, event.arguments
                )
                self._batch(event.turn, event.batch).calls[event.call] = made
            case ToolResultEvent():
                self._result(event)

    def _batch(self, number: int, batch: int) -> _Segment:
        """Returns the segment whose calls are those of this batch."""
        turn = self._of(number)
        last = turn.segments[-1]
        if last.batch not in (None, batch):
            self._join_steering(turn)
            last = _Segment()
            turn.segments.append(last)
        last.batch = batch
        return last

    def _result(self, event: ToolResultEvent) -> None:
        note = _output(event.output)
        turn = self._of(event.turn)
        if event.invalid is not None:
            made = event.invalid
            call = _call(made.upstream_id, made.name, {"invalid": made.arguments})
            segment = self._batch(event.turn, made.batch)
            segment.calls[event.call] = call
            segment.results[event.call] = note
            return
        for segment in turn.segments:
            if event.call in segment.calls:
                segment.results[event.call] = note

    def _ending(self, event: CutEvent | UsageEvent | DoneEvent) -> None:
        turn = self._of(event.turn)
        match event:
            case CutEvent():
                kept = event.text.bytes
                known = turn.kept_bytes
                turn.kept_bytes = kept if known is None else min(known, kept)
            case UsageEvent():
                turn.model_calls = event.model_calls
            case DoneEvent():
                turn.withdrawn = event.status == "interrupted" and not turn.model_calls

    def join(self, messages: Iterable[int]) -> None:
        """Puts messages that steer the running turn at its end now."""
        wanted = set(messages)
        if self._turn is not None:
            self._join_steering(self._turn, only=wanted)

    def _join_steering(
        self, turn: _Turn, but: int | None = None, only: set[int] | None = None
    ) -> None:
        for seq in list(self._steering):
            if seq == but or (only is not None and seq not in only):
                continue
            self._steering.remove(seq)
            message = self._messages.pop(seq, None)
            if message is not None:
                turn.segments[-1].steers.append(message)


_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    "message": msgspec.json.Decoder(MessageEvent),
    "start": msgspec.json.Decoder(StartEvent),
    "tool_call": msgspec.json.Decoder(ToolCallEvent),
    "tool_result": msgspec.json.Decoder(ToolResultEvent),
    "usage": msgspec.json.Decoder(UsageEvent),
    "cut": msgspec.json.Decoder(CutEvent),
    "done": msgspec.json.Decoder(DoneEvent),
}


def _content(content: Content) -> Any:
    return content if isinstance(content, str) else msgspec.to_builtins(content)


def _call(upstream_id: str, name: str, arguments: Any) -> Message:
    text = orjson.dumps(arguments).decode()
    function = {"name": name, "arguments": text}
    return {"id": upstream_id, "type": "function", "function": function}


def _output(output: Any) -> str:
    if isinstance(output, str):
        return output or "(no output)"
    return orjson.dumps(output).decode()


def _size(messages: list[Message]) -> int:
    return len(orjson.dumps(messages))
