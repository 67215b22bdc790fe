"""Turns the bytes that a chat upstream answers with into model events.

Sans-I/O: `feed` what was read, `close` at the end. A delta is passed on as it is:
nothing is trimmed, repaired or guessed, and only an answer that says it is whole
counts as whole. The result is the same wherever reads end.

Neighbours: `sse` splits bytes into events, `template` knows those that repeat one
before them, `chunks` decodes the plain shape of an event at once, `lenient` reads every
other shape, `answer` puts it all together.
"""

import re
from typing import Final

import msgspec

from wsserver.engine.model import Failure, ModelEvent
from wsserver.providers.chat.answer import Answer
from wsserver.providers.chat.chunks import CHUNK
from wsserver.providers.chat.lenient import NO_REASON, read_payload
from wsserver.providers.chat.sse import MAX_EVENT_BYTES, EventSplitter, only_event
from wsserver.providers.chat.template import Template
from wsserver.providers.exact_json import is_object, read_json
from wsserver.providers.faults.failures import failure_from_payload

_BOM: Final = b"\xef\xbb\xbf"
_WHITESPACE: Final = b" \t\r\n"
# What may stand around the end mark.
_MARK_DRESS: Final = b' \t\r\n"'
# No field of an event stream begins so; JSON and markup do.
_BODY_STARTS: Final = frozenset(b"{[<")
_NO_CHAT: Final = "The upstream's answer is no chat completion."
# At least two words: signs of life are one.
_SENTENCE: Final = re.compile(rb"\s*[A-Za-z][^\s]*\s+[^\s]*[A-Za-z]").match
# What reading raises on what is no JSON, or is nested too deeply.
_UNREADABLE: Final = (ValueError, RecursionError)


class ChatDecoder:
    """Decodes the body of one 2xx answer to a chat completion request.

    The body may be an event stream or, from upstreams that do not stream, one JSON
    completion; which of them is seen from the body itself, since upstreams label
    both wrongly. Never raises, whatever the bytes are.

    Args:
        content_type: The answer's `Content-Type`, or None.
        key: What the request was authorized with, which no message passes on.

    Attributes:
        failed: Whether the upstream reported an error; what follows can't mend it.
        finished: Whether `Finished` was returned; nothing comes after it.
    """

    __slots__ = (
        "_answer", "_begun", "_between", "_body", "_bom", "_other_type", "_saw_event",
        "_splitter", "_template", "_text", "failed", "finished",
    )  # fmt: skip

    def __init__(self, *, content_type: str | None, key: str | None = None) -> None:
        media_type = (content_type or "").partition(";")[0].strip().lower()
        # Whether the answer claims to be something else than an event stream.
        self._other_type = media_type not in {"", "text/event-stream"}
        # The bytes so far, as long as they may be a byte order mark.
        self._bom: bytes | None = b""
        # Whether the first byte that matters was seen.
        self._begun = False
        # Whether a stream's next event begins with what comes next.
        self._between = False
        # The answer, when it is no event stream.
        self._body: bytearray | None = None
        self._splitter = EventSplitter()
        self._template = Template()
        self._saw_event = False
        self._answer = Answer(key)
        self._text = self._answer.text
        self.failed = False
        self.finished = False

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Takes the next bytes and returns the events that they completed."""
        out: list[ModelEvent] = []
        if self._between and (text := self._template.text(data)) is not None:
            self._text.push_clean(text, out)
        elif not self.finished:
            self._feed(data, out)
        return out

    def _feed(self, data: bytes, out: list[ModelEvent]) -> None:
        if not self._begun:
            data = self._begin(data)
        if self._body is not None:
            self._feed_body(self._body, data, out)
        elif self._between and (payload := only_event(data)) is not None:
            self._event(b"", payload, out, alone=True)
        else:
            self._feed_events(data, out)
            self._between = self._splitter.between and not self.finished
        self.failed = self._answer.failure is not None

    def close(self, *, aborted: bool = False) -> list[ModelEvent]:
        """Ends the answer and returns the last events, with `Finished` if it is due.

        Args:
            aborted: Whether the connection broke instead of ending properly.
        """
        out: list[ModelEvent] = []
        if self.finished:
            return out
        if self._body is not None:
            self._close_body(bytes(self._body), out, aborted=aborted)
            return out
        for name, payload in self._splitter.close():
            self._event(name, payload, out, at_end=True)
            if self.finished:
                return out
        if self._begun and self._other_type and not self._saw_event and not aborted:
            self._answer.fail(_fault(_NO_CHAT))
        self._finish(out)
        return out

    def _begin(self, data: bytes) -> bytes:
        """Finds out what the answer is; returns what of `data` belongs to it."""
        if self._bom is not None:
            data = self._bom + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._bom = data
                return b""
            self._bom = None
            data = data.removeprefix(_BOM)
        data = data.lstrip(_WHITESPACE)
        if data:
            self._begun = True
            if data[0] in _BODY_STARTS:
                self._body = bytearray()
            else:
                self._between = True
        return data

    def _feed_body(self, body: bytearray, data: bytes, out: list[ModelEvent]) -> None:
        body += data
        if len(body) > MAX_EVENT_BYTES:
            self._finish_too_large(out)

    def _feed_events(self, data: bytes, out: list[ModelEvent]) -> None:
        for name, payload in self._splitter.feed(data):
            self._event(name, payload, out)
            if self.finished:
                return
        if self._splitter.too_large:
            self._finish_too_large(out)

    def _event(
        self,
        name: bytes,
        data: bytes,
        out: list[ModelEvent],
        *,
        at_end: bool = False,
        alone: bool = False,
    ) -> None:
        self._saw_event = True
        if name != b"error":
            try:
                chunk = CHUNK.decode(data)
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                if chunk.choices or chunk.usage:
                    self._answer.add_chunk(chunk, out)
                    if alone:
                        self._template.learn(data, chunk)
                    return
        self._unusual_event(name, data, out, at_end=at_end)

    def _unusual_event(
        self, name: bytes, data: bytes, out: list[ModelEvent], *, at_end: bool
    ) -> None:
        if data.strip(_MARK_DRESS).upper() == b"[DONE]":
            self._finish(out, is_done=True)
            return
        is_error = name == b"error"
        try:
            reading = read_payload(read_json(data), is_error=is_error)
        except _UNREADABLE:
            self._unreadable_event(is_error, data, out, at_end=at_end)
        else:
            self._answer.add_reading(reading, out)

    def _unreadable_event(
        self, is_error: bool, data: bytes, out: list[ModelEvent], *, at_end: bool
    ) -> None:
        if is_error and not at_end:
            text = data.decode("utf-8", "replace")
            self._answer.fail(failure_from_payload(text, NO_REASON))
        elif b"\n" in data:
            # Some upstreams put no blank lines between their events.
            for line in data.split(b"\n"):
                if not self.finished:
                    self._event(b"", line, out, at_end=at_end)
        elif data.startswith((b"{", b"[")) and not at_end:
            # A delta may be lost in it; the rest must not pass for the whole.
            self._answer.fail(_fault("The upstream sent an event that is not JSON."))
        elif _SENTENCE(data) and not at_end:  # maybe why there is no answer
            text = data.decode("utf-8", "replace")
            self._answer.complain(failure_from_payload(text, NO_REASON))

    def _close_body(self, body: bytes, out: list[ModelEvent], *, aborted: bool) -> None:
        """Reads an answer that is no event stream; it is never shown as text."""
        is_done = False
        try:
            payload = _read_body(body)
            reading = read_payload(payload)
        except _UNREADABLE:
            if not aborted:
                is_page = body.startswith(b"<")
                page = body.decode("utf-8", "replace") if is_page else ""
                self._answer.fail(failure_from_payload(page, _NO_CHAT))
        else:
            if reading.failure is None and not reading.is_chat:
                self._answer.fail(failure_from_payload(payload, _NO_CHAT))
            self._answer.add_reading(reading, out)
            # A completion is whole by itself; chunks have to say so.
            is_done = bool(reading.snapshots) and is_object(payload)
        self._finish(out, is_done=is_done)

    def _finish_too_large(self, out: list[ModelEvent]) -> None:
        message = f"The upstream sent more than {MAX_EVENT_BYTES} bytes at once."
        self._answer.fail(_fault(message))
        self._finish(out)

    def _finish(self, out: list[ModelEvent], *, is_done: bool = False) -> None:
        self.finished = True
        self._between = False
        self._answer.finish(out, is_done=is_done)


def _read_body(body: bytes) -> object:
    """Reads one JSON value, or one on each line.

    Raises:
        ValueError: It is neither.
    """
    try:
        return read_json(body)
    except ValueError:
        return [read_json(line) for line in body.splitlines() if line.strip()]


def _fault(message: str) -> Failure:
    return Failure(code="upstream_error", message=message, retryable=True)
