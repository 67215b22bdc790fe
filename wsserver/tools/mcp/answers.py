"""What an MCP server at a URL answers, as the SDK takes it.

The SDK takes one message in a body and in an event, and says of any other that it
failed. Here batches are taken apart, what can't be read becomes an error for its call,
and a status that is an error is named. No answer is longer than
`stdio.MOST_MESSAGE_BYTES`: it would be parsed in one go in the event loop.
"""

from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import TypeGuard

import httpx2
from mcp.types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from wsserver.tools.mcp.message import MessageReader, unreadable
from wsserver.tools.mcp.stdio import MOST_MESSAGE_BYTES

_JSON, _EVENTS = "application/json", "text/event-stream"
_REMEDIES = {
    401: ": the credentials are missing, or not right",
    403: ": the credentials do not allow this",
}

_Id = str | int


class Answers:
    """Reads the answers of one server."""

    def __init__(self, server: str) -> None:
        """Takes the server's name, for the log."""
        self._reader = MessageReader(server)

    async def read(self, response: httpx2.Response) -> None:
        """Puts what the SDK takes in the place of a body; a hook of the client.

        Raises:
            StreamError: It is compressed.
            TransportError: The connection broke.
        """
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError(
                "the answer is compressed, which was not asked for"
            )
        kind = response.headers.get("content-type", "").lower()
        request = _request(response)
        if response.status_code < 300 and kind.startswith(_EVENTS):
            response.stream = _Events(response, self._reader, request)
        elif request is None or 300 <= response.status_code < 400:
            response.stream = _Bounded(response)
        elif response.status_code >= 400:
            await self._read_refusal(response, kind, request)
        elif kind.startswith(_JSON):
            _put(response, await self._read_body(response, request))
        else:
            response.stream = _Bounded(response)

    async def _read_body(
        self, response: httpx2.Response, request: _Id
    ) -> list[JSONRPCMessage]:
        try:
            content = b"".join([data async for data in _Bounded(response)])
        except httpx2.StreamError as error:
            return [unreadable(request, str(error))]
        messages = _meant_for(request, self._reader.read(content))
        if not any(map(_is_answer, messages)):
            messages.append(unreadable(request, "there is no answer in it"))
        return messages

    async def _read_refusal(
        self, response: httpx2.Response, kind: str, request: _Id
    ) -> None:
        """Says which status it was, unless the body says what is wrong."""
        status = response.status_code
        if kind.startswith(_JSON):
            messages = await self._read_body(response, request)
            answer = messages[-1]
            if isinstance(answer, JSONRPCError) and answer.error.code != PARSE_ERROR:
                _put(response, [answer])
                return
        if status != HTTPStatus.NOT_FOUND:  # which the SDK takes for more than that
            message = f"HTTP status {status}{_REMEDIES.get(status, '')}"
            fault = ErrorData(code=INTERNAL_ERROR, message=message)
            _put(response, [JSONRPCError(jsonrpc="2.0", id=request, error=fault)])


class _Body(httpx2.AsyncByteStream):
    """Stands in the place of a body, whose connection it gives back."""

    def __init__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream), "it is async"
        self._stream = response.stream

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Bounded(_Body):
    """A body that ends with an error where it is too long."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._stream:
            size += len(data)
            if size > MOST_MESSAGE_BYTES:
                raise httpx2.StreamError(
                    f"the answer is longer than {MOST_MESSAGE_BYTES} bytes"
                )
            yield data


class _Said(_Body):
    """A body that was read, and says this."""

    def __init__(self, response: httpx2.Response, content: bytes) -> None:
        super().__init__(response)
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class _Events(_Body):
    """An event stream in which each event has one message."""

    def __init__(
        self, response: httpx2.Response, reader: MessageReader, request: _Id | None
    ) -> None:
        super().__init__(response)
        # The library reads the stream, and has a limit for each event.
        self._source = httpx2.EventSource(
            httpx2.Response(
                response.status_code,
                headers=response.headers,
                stream=self._stream,
                request=response.request,
            ),
            max_event_size=MOST_MESSAGE_BYTES,
        )
        self._reader = reader
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for event in self._source:
            if event.event == "message" and event.data:
                messages = self._reader.read(event.data.encode())
                said = list(map(_dump, _meant_for(self._request, messages)))
            else:
                said = [event.data.encode()]
            yield _written(event, said)


def _put(response: httpx2.Response, messages: Sequence[JSONRPCMessage]) -> None:
    """Makes messages the body of an answer: the SDK takes several as events only."""
    said = list(map(_dump, messages))
    if len(said) == 1:
        response.headers["content-type"] = _JSON
        response.stream = _Said(response, said[0])
    else:
        response.headers["content-type"] = _EVENTS
        response.stream = _Said(response, _written(httpx2.ServerSentEvent(), said))


def _written(event: httpx2.ServerSentEvent, said: Sequence[bytes]) -> bytes:
    """Writes an event for each thing said; the place to resume at is the last's."""
    kind = b"event: %b\n" % event.event.encode()
    lines = [kind + _data(data) for data in said[:-1]]
    last = kind
    if event.id:
        last += b"id: %b\n" % event.id.encode()
    if event.retry is not None:
        last += b"retry: %d\n" % event.retry
    return b"".join([*lines, last + _data(said[-1] if said else b"")])


def _data(text: bytes) -> bytes:
    return b"".join(b"data: %b\n" % line for line in text.split(b"\n")) + b"\n"


def _meant_for(
    request: _Id | None, messages: list[JSONRPCMessage]
) -> list[JSONRPCMessage]:
    """Returns messages with the answer to a request at the end, and no other answer.

    An answer to a request is its answer, whatever number it has.
    """
    answers = [message for message in messages if _is_answer(message)]
    if request is None or not answers:
        return messages
    meant = next((one for one in answers if str(one.id) == str(request)), answers[0])
    others = [message for message in messages if not _is_answer(message)]
    return [*others, meant.model_copy(update={"id": request})]


def _is_answer(message: JSONRPCMessage) -> TypeGuard[JSONRPCResponse | JSONRPCError]:
    return isinstance(message, JSONRPCResponse | JSONRPCError)


def _dump(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _request(response: httpx2.Response) -> _Id | None:
    """Returns the number of the request that is answered; None for no request."""
    content = response.request.content
    message = jsonrpc_message_adapter.validate_json(content) if content else None
    return message.id if isinstance(message, JSONRPCRequest) else None
