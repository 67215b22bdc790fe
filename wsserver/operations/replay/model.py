"""A model that says again what the models of a recording said.

So a replay needs neither them nor their keys, and what comes out otherwise is the
server's doing. A turn is found by its message, a model call of it by how many came
before. Where a turn was stopped it has nothing to say and waits, as they would have.
"""

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
from msgspec import Struct, to_builtins

from protocol.content import Content
from protocol.events import (
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    ReasoningEvent,
    RefusalEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
    TurnEvent,
)
from wsserver.engine.model import (
    Call,
    Failure,
    Finished,
    FinishReason,
    ModelEvent,
    ModelRequest,
    Reasoning,
    Refusal,
    Text,
    UpstreamError,
)
from wsserver.engine.provider import Sink

_REASONS: dict[str | None, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "upstream_truncated": "incomplete",
}
_KINDS = {DeltaEvent: Text, ReasoningEvent: Reasoning, RefusalEvent: Refusal}


class Heard(Struct, frozen=True):
    """An event when clients first had it; of a text the part that was new."""

    at_ms: float
    event: LogEvent
    text: str


class _Answer(Struct):
    """What one model call gives.

    Attributes:
        begun_ms: When it was made, or about then.
        pieces: Texts, each with how many milliseconds after that.
        calls: The calls that it ended with.
        end: The end; None for silence.
        end_ms: When it ended, after `begun_ms`.
    """

    begun_ms: float
    pieces: list[tuple[float, ModelEvent]] = []
    calls: list[Call] = []
    end: Finished | None = None
    end_ms: float = 0.0


class _Turn(Struct):
    """The model calls of a turn."""

    answers: list[_Answer]
    failure: Failure | None = None


class RecordedProvider:
    """Answers as a recording does.

    Attributes:
        models: The names of models that it was asked for.
    """

    def __init__(self, heard: Sequence[Heard], *, redacted: bool, fast: bool) -> None:
        """Learns its answers.

        Args:
            heard: All events, as they came.
            redacted: Whether messages are told by their ids: their texts are gone.
            fast: Whether to say everything at once.
        """
        self.models: set[str] = set()
        self._redacted = redacted
        self._fast = fast
        self._turns: dict[str, deque[_Turn]] = defaultdict(deque)
        self._current: dict[str, _Turn] = {}
        self._learn(heard)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator["_Stream"]:
        """Makes one model call; see `wsserver.engine.provider.Provider.stream`.

        Raises:
            UpstreamError: The recording has no answer to this.
        """
        await anyio.lowlevel.checkpoint()
        yield _Stream(self._find(request.messages), fast=self._fast)

    def _find(self, messages: Sequence[dict[str, Any]]) -> _Answer:
        calls = 0
        for message in reversed(messages):
            calls += message["role"] == "assistant"
            if message["role"] != "user":
                continue
            key = _words(message["content"])
            if calls == 0 and self._turns.get(key):
                self._current[key] = self._turns[key].popleft()
            if key in self._current:
                answers = self._current[key].answers
                if calls < len(answers):
                    return answers[calls]
                return _Answer(begun_ms=0, end=Finished(reason="stop"))
        raise UpstreamError(
            Failure(
                code="upstream_error",
                message="The recording has no answer to this.",
                retryable=False,
            )
        )

    def _learn(self, heard: Sequence[Heard]) -> None:
        messages: dict[tuple[str, int], str] = {}
        turns: dict[tuple[str, int], _Turn] = {}
        for each in heard:
            event = each.event
            name = event.conversation
            if isinstance(event, MessageEvent):
                key = event.id if self._redacted else _words(event.content)
                messages[name, event.seq] = key
            elif isinstance(event, StartEvent):
                self.models.add(event.model)
                turn = turns[name, event.turn] = _Turn([_Answer(begun_ms=each.at_ms)])
                self._turns[messages.get((name, event.message), "")].append(turn)
            elif isinstance(event, TurnEvent) and (name, event.turn) in turns:
                self._add(turns[name, event.turn], each)

    def _add(self, turn: _Turn, heard: Heard) -> None:
        answer, event = turn.answers[-1], heard.event
        after_ms = heard.at_ms - answer.begun_ms
        match event:
            case ToolCallEvent():
                arguments = "{}" if self._redacted else _json(event.arguments)
                upstream = event.upstream_id or event.call
                self._call(
                    answer, Call(upstream, event.name, arguments, True), after_ms
                )
            case ToolResultEvent(invalid=call) if call is not None:
                made = Call(call.upstream_id, call.name, call.arguments, False)
                self._call(answer, made, after_ms)
                turn.answers.append(_Answer(begun_ms=heard.at_ms))
            case ToolResultEvent():
                if answer.calls:
                    turn.answers.append(_Answer(begun_ms=heard.at_ms))
                answer = turn.answers[-1]
                answer.begun_ms = heard.at_ms
            case DeltaEvent() | ReasoningEvent() | RefusalEvent() if heard.text:
                piece = _KINDS[type(event)](heard.text)
                answer.pieces.append((after_ms, piece))
            case TurnErrorEvent(code=code, message=message):
                turn.failure = Failure(code=code, message=message, retryable=False)
            case DoneEvent():
                answer.end, answer.end_ms = _end(event, turn.failure), after_ms
            case _:
                pass

    def _call(self, answer: _Answer, call: Call, after_ms: float) -> None:
        answer.calls.append(call)
        answer.end = Finished(reason="tool_calls", calls=tuple(answer.calls))
        answer.end_ms = after_ms


class _Stream:
    """One model call."""

    def __init__(self, answer: _Answer, *, fast: bool) -> None:
        self._answer = answer
        self._fast = fast

    async def pump(self, sink: Sink) -> None:
        """See `wsserver.engine.provider.ModelStream.pump`."""
        began, answer = anyio.current_time(), self._answer
        for after_ms, piece in answer.pieces:
            await self._wait(began, after_ms)
            sink([piece])
        if answer.end is None:
            await anyio.sleep_forever()
            return
        await self._wait(began, answer.end_ms)
        sink([answer.end])

    async def _wait(self, began: float, after_ms: float) -> None:
        if self._fast:
            await anyio.lowlevel.checkpoint()
        else:
            await anyio.sleep_until(began + after_ms / 1000)


def _end(event: DoneEvent, failure: Failure | None) -> Finished | None:
    if failure is not None and failure.code != "schema_mismatch":
        return Finished(reason="error", failure=failure)
    if event.status == "interrupted":
        return None
    if event.status == "incomplete" and event.reason not in _REASONS:
        return None  # the server ended it: it was silent, or the time was over
    reason = _REASONS.get(event.reason, "stop")
    return Finished(reason=reason, upstream_reason=event.finish_reason)


def _words(content: Content | list[Any]) -> str:
    """Returns the text of a message, as in the log or as in a prompt."""
    if isinstance(content, str):
        return content
    parts = [to_builtins(part) for part in content]
    return "".join([part["text"] for part in parts if part["type"] == "text"])


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
