"""One HTTP/1.1 connection to an upstream, read where the bytes arrive.

The event loop hands each read to this protocol, llhttp takes the HTTP apart, and
what it holds of an answer's body goes straight to the body's sink: between the
socket and the log there is no queue and no task to be woken.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

import httptools

_MAX_HEADER_BYTES = 64 * 1024
# Headers, interim answers, trailers, sizes of chunks.
_MAX_BODILESS_BYTES = 4 * _MAX_HEADER_BYTES
# A body that nobody takes (an error page) is not read further than this at a time.
_MAX_WAITING_BYTES = 256 * 1024

Headers = list[tuple[bytes, bytes]]
Sink = Callable[[bytes], None]


class Answer:
    """What came back so far for one request.

    Attributes:
        status: The status code.
        headers: Names and values as they came.
        ended: Whether the body is there to its proper end.
    """

    __slots__ = (
        "ended", "headers", "status",
    )  # fmt: skip

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self.ended = False

    def header(self, name: bytes) -> bytes | None:
        """Returns the value of a header, given in lower case; None without it."""
        return next((v for n, v in self.headers if n.lower() == name), None)


class UpstreamConnection(asyncio.Protocol):
    """A connection that carries one request at a time.

    Attributes:
        idle_since: When it was last given back, on the event loop's clock.
    """

    __slots__ = (
        "_answer", "_bodiless_bytes", "_fault", "_head", "_header_bytes", "_keep",
        "_loop", "_moved", "_parser", "_sink", "_transport", "_until_close", "_waiting",
        "_waiting_bytes", "idle_since",
    )  # fmt: skip

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer = Answer()
        self._head: asyncio.Future[Answer] | None = None
        self._moved: asyncio.Future[None] | None = None
        self._sink: Sink | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._header_bytes = 0
        self._bodiless_bytes = 0  # of reads since the last one that held some body
        self._fault: Exception | None = None
        self._until_close = False
        self._keep = False

    # The event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport, also once more after a TLS handshake in a tunnel."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Takes what one read held."""
        if self._parser is None:
            self.abort()  # An upstream that speaks unasked is not to be trusted.
            return
        waiting_bytes = self._waiting_bytes
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionError("the upstream switched protocols"))
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the answer is no HTTP: {error}"))
        else:
            if self._waiting_bytes == waiting_bytes:
                self._count_bodiless(len(data))
            else:
                self._bodiless_bytes = 0
            self._deliver()

    def eof_received(self) -> bool:
        """Takes the end of what the upstream sends."""
        if self._until_close and not self._answer.ended and self._fault is None:
            self._until_close = False
            self._answer.ended = True
            self._deliver()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Takes the end of the connection."""
        if exc is None:
            self.eof_received()
        self._transport = None
        if not self._answer.ended:
            self._fail(exc or ConnectionResetError("the upstream hung up"))

    # llhttp

    def on_message_begin(self) -> None:
        """An answer begins, interim ones too."""
        if self._answer.ended:
            raise ValueError("it was not asked for")

    def on_status(self, status: bytes) -> None:
        """The reason phrase; comes for each answer, so it tells a new one."""
        self._answer.status = self._parser.get_status_code()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise ValueError("the headers are too long")
        self._answer.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """All headers are there."""
        answer = self._answer
        answer.status = self._parser.get_status_code()
        if 100 <= answer.status < 200:
            return
        self._until_close = not (
            answer.header(b"transfer-encoding") or answer.header(b"content-length")
        )
        if self._head is not None and not self._head.done():
            self._head.set_result(answer)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._waiting.append(body)
        self._waiting_bytes += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole; after an interim one the real one follows."""
        answer = self._answer
        if 100 <= answer.status < 200:
            answer.headers.clear()
            return
        answer.ended = True
        self._until_close = False
        self._keep = bool(self._parser.should_keep_alive())

    # The provider

    @property
    def reusable(self) -> bool:
        """Whether it may carry another request."""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and self._answer.ended
            and self._keep
            and self._fault is None
            and not self._waiting
        )

    async def request(self, head: bytes, body: bytes) -> Answer:
        """Sends a request; returns when the answer's headers are there.

        Raises:
            OSError: The connection broke, or what came is no HTTP.
        """
        if self._transport is None:
            raise self._fault or ConnectionResetError("the upstream hung up")
        self._answer = Answer()
        self._header_bytes = self._bodiless_bytes = 0
        self._parser = httptools.HttpResponseParser(self)
        self._keep = self._until_close = False
        self._sink = None
        self._head = self._loop.create_future()
        self._transport.write(head + body if len(body) < 65_536 else head)
        if len(body) >= 65_536:
            self._transport.write(body)
        try:
            return await self._head
        finally:
            self._head = None

    async def pump(self, sink: Sink) -> None:
        """Gives all of the body to `sink`, as it arrives; returns at its end.

        `sink` is called where the bytes arrive, with all that a read held; what
        it raises is raised here. Cancelling takes the sink away.

        Raises:
            OSError: The connection broke; what came before was given first.
        """
        self._sink = sink
        try:
            self._deliver()
            while self._sink is sink and not self._answer.ended:
                await self._wait()
        finally:
            self._sink = None

    async def read(self) -> bytes:
        """Returns what has come since the last read; b"" at the proper end.

        Raises:
            OSError: The connection broke; what came before is returned first.
        """
        while not self._waiting and not self._answer.ended:
            await self._wait()
        return self._take()

    def stop_pump(self) -> None:
        """Lets `pump` return although the body goes on."""
        self._sink = None
        self._wake()

    def abort(self) -> None:
        """Drops the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Does a TLS handshake over the connection as it is (in a tunnel).

        Raises:
            OSError: There is no TLS.
        """
        assert self._transport is not None, "a tunnel is open"
        self._parser = None
        self._answer = Answer()
        self._transport = await self._loop.start_tls(
            self._transport, self, context, server_hostname=host
        )

    async def _wait(self) -> None:
        if self._fault is not None:
            raise self._fault
        self._moved = self._loop.create_future()
        try:
            await self._moved
        finally:
            self._moved = None

    def _take(self) -> bytes:
        waiting = self._waiting
        data = waiting[0] if len(waiting) == 1 else b"".join(waiting)
        waiting.clear()
        if self._waiting_bytes > _MAX_WAITING_BYTES and self._transport is not None:
            self._transport.resume_reading()
        self._waiting_bytes = 0
        return data

    def _count_bodiless(self, count: int) -> None:
        """Bounds what llhttp keeps of a line that does not end."""
        self._bodiless_bytes += count
        if self._bodiless_bytes > _MAX_BODILESS_BYTES:
            self._fail(ConnectionError("the answer is no HTTP: a line is too long"))

    def _deliver(self) -> None:
        """Gives what came to the sink, or wakes who waits for it."""
        sink = self._sink
        if sink is not None and self._waiting:
            try:
                sink(self._take())
            except BaseException as error:
                # Whoever pumps is told, not the event loop.
                self._sink = None
                if self._moved is None or self._moved.done():
                    raise
                self._moved.set_exception(error)
                return
        elif self._waiting_bytes > _MAX_WAITING_BYTES and self._transport is not None:
            self._transport.pause_reading()
        if self._answer.ended or sink is None:
            self._wake()

    def _fail(self, fault: Exception) -> None:
        if self._fault is None:
            self._fault = fault
        self.abort()
        if self._sink is not None:
            self._deliver()
        for future in (self._head, self._moved):
            if future is not None and not future.done():
                future.set_exception(fault)

    def _wake(self) -> None:
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)
