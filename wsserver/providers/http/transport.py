"""The HTTP connections to one upstream, as a transport under the openai SDK.

It does what the SDK's own transport does not: what is read of an answer goes to its
sink where it arrives, every fault becomes an `UpstreamError` that says which it was,
the body of an error answer is read within bounds, and an answer can be closed
without waiting, so that a cancellation at any point gives the connection back or
closes it.

Importing this module is slow (httpx2, TLS): `chat.provider` does it late and in a
thread.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from typing import Final

import anyio
import httpx2

from wsserver.engine.model import Failure, UpstreamError
from wsserver.providers.faults.failures import (
    StatusError,
    failure_from_status,
    read_retry_after,
)
from wsserver.providers.faults.refusals import Refusal, read_refusal
from wsserver.providers.http.connection import Answer, Sink, UpstreamConnection
from wsserver.providers.http.pool import ProxyRefusedError, UpstreamPool
from wsserver.providers.http.unpacking import ENCODINGS, Unpacker

# A handler's error page is cut here; what matters stands at its beginning.
_MAX_ERROR_BYTES: Final = 64 * 1024
# What a final answer says is all that its reader gets. Where the status says that
# trying again may help, its words come with the headers or are not worth a wait.
_FINAL_BODY_SECONDS: Final = 5.0
_RETRIED_BODY_SECONDS: Final = 0.5

_KNOWN_ENCODINGS: Final = ENCODINGS | {b"", b"identity"}

_EXTENSION: Final = "wsserver.body"


class UpstreamBody(httpx2.AsyncByteStream):
    """The body of an answer."""

    __slots__ = (
        "_answer", "_closed", "_connection", "_pool", "_unpacker",
    )  # fmt: skip

    def __init__(
        self, connection: UpstreamConnection, answer: Answer, pool: UpstreamPool
    ) -> None:
        self._connection = connection
        self._answer = answer
        self._pool = pool
        self._closed = False
        encoding = _encoding(answer)
        # None was asked for, but some gateways compress nonetheless.
        self._unpacker = Unpacker(encoding) if encoding in ENCODINGS else None

    @property
    def content_type(self) -> str | None:
        """The answer's `Content-Type`, or None."""
        found = self._answer.header(b"content-type")
        return None if found is None else found.decode("latin-1")

    def pump(self, sink: Sink) -> Awaitable[None]:
        """Gives the whole body to `sink` as it arrives; see `UpstreamConnection`.

        Raises:
            UnreadableError: It is compressed badly.
            OSError: The connection broke. What came before is given first.
        """
        unpacker = self._unpacker
        if unpacker is None:
            return self._connection.pump(sink)
        return self._connection.pump(lambda data: sink(unpacker.feed(data)))

    def stop_pump(self) -> None:
        """Lets `pump` return although the body goes on."""
        self._connection.stop_pump()

    async def read(self) -> bytes:
        """Returns what has come since the last read; b"" at the proper end.

        Raises:
            UnreadableError: It is compressed badly.
            OSError: The connection broke. What came before is returned first.
        """
        while data := await self._connection.read():
            if self._unpacker is None:
                return data
            if unpacked := self._unpacker.feed(data):
                return unpacked
        return b""

    def close(self) -> None:
        """Closes the connection at once, unless the answer was read to its end."""
        if not self._closed:
            self._closed = True
            self._pool.give_back(self._connection)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    async def aclose(self) -> None:
        """Does as `close`."""
        self.close()


class UpstreamTransport(httpx2.AsyncBaseTransport):
    """Sends requests to an upstream over pooled connections.

    Args:
        base_url: Where the upstream is.
        connect_timeout_seconds: For TCP, a proxy's tunnel and TLS together. Nothing
            else has a limit here.
        trust_environment: Whether the usual variables name proxies and certificates.
    """

    def __init__(
        self, base_url: str, *, connect_timeout_seconds: float, trust_environment: bool
    ) -> None:
        self._pool = UpstreamPool(
            base_url,
            connect_timeout_seconds=connect_timeout_seconds,
            trust_environment=trust_environment,
            tls=httpx2.create_ssl_context(trust_env=trust_environment),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends `request` and returns the answer once its headers are there.

        Raises:
            UpstreamError: There is no answer, or it is no 2xx.
        """
        try:
            connection = await self._pool.take()
        except (OSError, ValueError) as error:
            raise UpstreamError(_failure_of(error, connecting=True)) from error
        try:
            answer = await connection.request(self._head(request), request.content)
        except OSError as error:
            self._pool.give_back(connection)
            raise UpstreamError(_failure_of(error, connecting=False)) from error
        except BaseException:
            self._pool.give_back(connection)
            raise
        body = UpstreamBody(connection, answer, self._pool)
        if not 200 <= answer.status < 300:
            try:
                raise StatusError(await _refusal_of(answer, body), answer.status)
            finally:
                body.close()
        if _encoding(answer) not in _KNOWN_ENCODINGS:
            body.close()
            raise UpstreamError(_packed(_encoding(answer)))
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=body,
            extensions={_EXTENSION: body},
            request=request,
        )

    async def aclose(self) -> None:
        """Closes all connections, those in use too."""
        self._pool.close()

    def _head(self, request: httpx2.Request) -> bytes:
        url = request.url
        target = url.raw_path
        if self._pool.absolute:  # a proxy logs it: no password in there
            target = str(url.copy_with(userinfo=b"")).encode()
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
        headers = request.headers.raw
        if self._pool.absolute:
            headers = [*headers, *self._pool.proxy_headers]
        lines += [b"%b: %b" % header for header in headers]
        return b"\r\n".join(lines) + b"\r\n\r\n"


def body_of(response: httpx2.Response) -> UpstreamBody:
    """Returns the body of a response that this transport made."""
    body = response.extensions[_EXTENSION]
    assert isinstance(body, UpstreamBody), "no other transport is in use"
    return body


def _encoding(answer: Answer) -> bytes:
    return (answer.header(b"content-encoding") or b"").strip().lower()


def _packed(encoding: bytes) -> Failure:
    name = encoding[:40].decode("ascii", "replace")
    return Failure(
        code="upstream_error",
        message=f"The upstream packed its answer ({name}) though asked not to.",
        retryable=False,
    )


async def _refusal_of(answer: Answer, body: UpstreamBody) -> Failure:
    retried = failure_from_status(answer.status, None).retryable
    content = bytearray()
    with anyio.move_on_after(_RETRIED_BODY_SECONDS if retried else _FINAL_BODY_SECONDS):
        try:
            while len(content) < _MAX_ERROR_BYTES:
                data = await body.read()
                if not data:
                    break
                content += data
        except OSError:
            pass  # What came of it is enough.
    packed = _encoding(answer) not in _KNOWN_ENCODINGS
    start = bytes(content[:_MAX_ERROR_BYTES])
    said = Refusal() if packed else read_refusal(start, body.content_type)
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in answer.headers
    }
    retry_after_seconds = read_retry_after(headers, datetime.now(UTC))
    return failure_from_status(
        answer.status, said.payload, retry_after_seconds, flaw=said.flaw
    )


def _failure_of(error: Exception, *, connecting: bool) -> Failure:
    """Says why there is no answer, without names and addresses of the network."""
    code = "upstream_unavailable"
    retryable = True
    match error:
        case TimeoutError():
            code, message = "upstream_timeout", "The upstream took too long to connect."
        case socket.gaierror() | UnicodeError():
            message = "The upstream's name is not known."
        case ssl.SSLCertVerificationError():
            message, retryable = "The upstream's certificate is bad.", False
        case ssl.SSLError():
            message = "No TLS with the upstream."
        case ProxyRefusedError():
            message = "The proxy gave no way to the upstream."
        case ConnectionError() if not connecting and "no HTTP" in str(error):
            code, message = "upstream_error", "The upstream's answer is no HTTP."
        case _ if connecting:
            message = "The upstream can't be reached."
        case _:
            message = "The upstream hung up."
    return Failure(
        code=code,
        message=message,
        retryable=retryable,
        upstream_code=type(error).__name__,
    )
