"""One answer of a model while it is put together.

It takes what the events or the body of an upstream's answer say, passes each delta
on as it is, and knows in the end how the answer ended. `decoder` feeds it.
"""

from typing import Final

from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
    Usage,
)
from wsserver.providers.chat.channel import Channel, Kind
from wsserver.providers.chat.chunks import Choice, Chunk, Delta
from wsserver.providers.chat.finish_reasons import read_finish_reason, settle
from wsserver.providers.chat.lenient import NO_REASON, CallPiece, Reading, Said
from wsserver.providers.chat.tool_calls import MOST_CALLS, ToolCalls
from wsserver.providers.chat.usage import read_usage
from wsserver.providers.faults.failures import without_key
from wsserver.providers.surrogates import clean

_MAX_WORD_CHARS: Final = 64


class Answer:
    """Makes model events; each method appends its events to `out`.

    Attributes:
        failure: Why the answer ends with an error, whatever else comes.
        text: What it says; takes events of nothing but text directly.
    """

    __slots__ = (
        "_calls", "_complaint", "_foreign", "_key", "_reasoning", "_refusal", "_usage",
        "_word", "failure", "text",
    )  # fmt: skip

    def __init__(self, key: str | None = None) -> None:
        self._key = key
        self.text = Channel(Text)
        self._reasoning = Channel(Reasoning)
        self._refusal = Channel(Refusal)
        self._calls = ToolCalls()
        # The last finish reason, in the upstream's word.
        self._word = ""
        self._usage: Usage | None = None
        self.failure: Failure | None = None
        # What may have been meant as an error.
        self._complaint: Failure | None = None
        # Whether something looked like an answer of another API.
        self._foreign = False

    def fail(self, failure: Failure) -> None:
        """Keeps the first fault, but one that says why goes before one that doesn't."""
        if self.failure is None or self.failure.message == NO_REASON:
            self.failure = failure

    def complain(self, failure: Failure) -> None:
        """Keeps the first thing that may have been meant as an error."""
        self._complaint = self._complaint or failure

    def add_chunk(self, chunk: Chunk, out: list[ModelEvent]) -> None:
        """Takes an event of the plain shape."""
        for position, choice in enumerate(chunk.choices or ()):
            if (position if choice.index is None else choice.index) == 0:
                self._add_choice(choice, out)
        if chunk.usage:
            self._usage = read_usage(chunk.usage) or self._usage

    def add_reading(self, reading: Reading, out: list[ModelEvent]) -> None:
        """Takes an event or a body of any other shape."""
        for said in reading.deltas:
            for kind, text in said.pieces:
                self._channel(kind).push(text, out)
            for piece in said.calls:
                self._add_call(piece, out)
        for said in reading.snapshots:
            self._add_snapshot(said, out)
        if reading.finish_reason:
            self._take_word(reading.finish_reason)
        self._usage = reading.usage or self._usage
        self._foreign |= reading.is_foreign
        if reading.complaint is not None:
            self.complain(reading.complaint)
        if reading.failure is not None:
            self.fail(reading.failure)

    def finish(self, out: list[ModelEvent], *, is_done: bool) -> None:
        """Ends the answer; nothing may be added after it.

        Args:
            out: Gets what was held back, then `Finished`.
            is_done: Whether the upstream marked the end of its answer.
        """
        said = self.text or self._reasoning or self._refusal or self._calls
        for channel in (self._reasoning, self.text, self._refusal):
            channel.flush(out)
        fragments, calls = self._calls.finish()
        out.extend(fragments)
        reason = settle(self._word, is_done=is_done, has_calls=bool(calls))
        complaint = None if self._word else self._complaint
        if complaint and not (said and (is_done or not complaint.upstream_code)):
            self.fail(complaint)
        elif reason == "stop" and self._foreign and not said:
            self.fail(
                Failure(
                    code="upstream_error",
                    message="The upstream answered in the format of another API.",
                    retryable=False,
                )
            )
        out.append(
            Finished(
                reason="error" if self.failure else reason,
                upstream_reason=self._word or None,
                calls=calls,
                usage=self._usage,
                failure=self.failure and without_key(self.failure, self._key),
            )
        )

    def _add_choice(self, choice: Choice, out: list[ModelEvent]) -> None:
        delta = choice.delta
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.thinking:
                self._add_thoughts(delta, out)
            if delta.content:
                self.text.push_clean(delta.content, out)
            if delta.refusal:
                self._refusal.push_clean(delta.refusal, out)
            if delta.tool_calls:
                self._add_calls(delta, out)
        if choice.finish_reason:
            self._take_word(choice.finish_reason)
        if choice.usage:
            self._usage = read_usage(choice.usage) or self._usage

    def _add_thoughts(self, delta: Delta, out: list[ModelEvent]) -> None:
        """Adds thinking, once where several members carry the same."""
        texts = (delta.reasoning_content, delta.reasoning, delta.thinking)
        for text in dict.fromkeys(texts):
            if text:
                self._reasoning.push_clean(text, out)

    def _add_calls(self, delta: Delta, out: list[ModelEvent]) -> None:
        for position, call in enumerate(delta.tool_calls or ()):
            function = call.function
            piece = CallPiece(
                label=call.index,
                id=call.id or "",
                name=(function and function.name) or "",
                arguments=(function and function.arguments) or "",
                own=position > 0,
            )
            self._add_call(piece, out)

    def _add_call(self, piece: CallPiece, out: list[ModelEvent]) -> None:
        if self._calls.opened > MOST_CALLS:  # it has failed
            return
        fragment = self._calls.push(piece)
        if fragment is not None:
            out.append(fragment)
        if self._calls.opened > MOST_CALLS:
            message = f"The upstream began more than {MOST_CALLS} calls in one answer."
            self.fail(Failure(code="upstream_error", message=message, retryable=False))

    def _add_snapshot(self, said: Said, out: list[ModelEvent]) -> None:
        for kind in (Reasoning, Text, Refusal):
            whole = "".join(text for of, text in said.pieces if of is kind)
            self._channel(kind).replace(clean(whole), out)
        for position, piece in enumerate(said.calls):
            fragment = self._calls.replace(position, piece)
            if fragment is not None:
                out.append(fragment)

    def _channel(self, kind: Kind) -> Channel:
        if kind is Text:
            return self.text
        return self._reasoning if kind is Reasoning else self._refusal

    def _take_word(self, word: str) -> None:
        self._word = clean(word)[:_MAX_WORD_CHARS]
        if read_finish_reason(word) == "error":
            self.fail(Failure(code="upstream_error", message=NO_REASON, retryable=True))
