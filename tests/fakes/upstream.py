"""A scripted model server on a real socket.

    async with FakeUpstream() as upstream:
        upstream.script(Reply(status=429), Reply(body=b"data: [DONE]\\n\\n"))
        ...  # point a client at upstream.base_url
        assert upstream.requests[0].json["model"] == "toy"

Each request gets the next reply of the script, the last one again and again. A
reply says to the byte what is written, in which writes and how it ends. What the
clients did is in `requests`: what they asked, how much of the answer was written,
when they went away. `replies` has bodies to put into a reply.
"""

import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self

import anyio
import orjson
from anyio.abc import SocketAttribute, SocketStream
from anyio.lowlevel import checkpoint

from tests.fakes.serving import serving
from tests.fakes.strict_messages import find_fault

_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer.

    Attributes:
        body: Its bytes, before HTTP frames them.
        status: The HTTP status.
        content_type: None sends no such header.
        headers: More headers.
        framing: How the body's end is marked: `chunked`, by `length`, or by the
            `close` of the connection.
        splits: Offsets in the body at which writes end.
        write_bytes: The length of each write; None writes all between two splits.
        end: `clean`, `abort` (the connection is closed in mid-body), `reset` (the
            same by RST) or `stall` (the connection stays open and silent).
        before_headers_seconds: How long nothing is sent.
        before_body_seconds: How long only headers are.
        between_writes_seconds: How long each pause between two writes is.
        before_end_seconds: How long the end of the body is held back.
        hold: Nothing is sent until it is set.
    """

    body: bytes = b""
    status: int = 200
    content_type: str | None = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    framing: Literal["chunked", "length", "close"] = "chunked"
    splits: Sequence[int] = ()
    write_bytes: int | None = None
    end: Literal["clean", "abort", "reset", "stall"] = "clean"
    before_headers_seconds: float = 0.0
    before_body_seconds: float = 0.0
    between_writes_seconds: float = 0.0
    before_end_seconds: float = 0.0
    hold: anyio.Event | None = None

    def head(self) -> bytes:
        """Returns the status line and the headers."""
        lines = [f"HTTP/1.1 {self.status} Scripted"]
        if self.content_type is not None:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        match self.framing:
            case "chunked":
                lines.append("Transfer-Encoding: chunked")
            case "length":
                lines.append(f"Content-Length: {len(self.body)}")
            case "close":
                lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode()

    def writes(self) -> Iterator[bytes]:
        """Yields what each write holds of the body, unframed."""
        edges = sorted({0, *self.splits, len(self.body)})
        for start, end in pairwise(edges):
            step = self.write_bytes or end - start
            for at in range(start, end, step):
                yield self.body[at : min(at + step, end)]


@dataclass(slots=True, kw_only=True)
class Request:
    """What a client asked, and how it went. Times are those of the event loop.

    Attributes:
        connection: The number of its connection, from 0.
        method: `POST`, ...
        path: With the query.
        headers: By their names in lower case.
        body: The bytes.
        arrived_at: When the request was there.
        bytes_written: How much of the body was sent.
        answered: Set when all of the reply that is ever sent was.
        disconnected: Set when the client closed the connection before that.
        disconnected_at: When it did.
    """

    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    arrived_at: float
    bytes_written: int = 0
    answered: anyio.Event = field(default_factory=anyio.Event)
    disconnected: anyio.Event = field(default_factory=anyio.Event)
    disconnected_at: float | None = None

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


Script = Reply | Callable[[Request], Reply]


class FakeUpstream:
    """The server; see the module.

    Args:
        strict: Whether messages are refused that a strict provider refuses.
        accepts: Whether connections are served; False leaves them in the backlog.
    """

    def __init__(self, *, strict: bool = False, accepts: bool = True) -> None:
        self.requests: list[Request] = []
        self.connections_opened = 0
        self.connections_open = 0
        self._strict = strict
        self._accepts = accepts
        self._script: list[Script] = [Reply(status=500, content_type=None)]
        self._exits = AsyncExitStack()
        self._arrival = anyio.Event()
        self._port = 0

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        return f"http://127.0.0.1:{self._port}/v1"

    def script(self, *replies: Script) -> None:
        """Sets what the next requests get; the last reply is given for ever."""
        assert replies, "a script has at least one reply"
        self._script = list(replies)

    async def wait_for_requests(self, count: int) -> list[Request]:
        """Waits until `count` requests have come in all, and returns them."""
        with anyio.fail_after(_WAIT_SECONDS):
            while len(self.requests) < count:
                await self._arrival.wait()
        return self.requests

    async def __aenter__(self) -> Self:
        if self._accepts:
            served = serving(self._serve)
            self._port = await self._exits.enter_async_context(served)
        else:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            await self._exits.enter_async_context(listener)
            self._port = listener.extra(SocketAttribute.local_port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    async def _serve(self, stream: SocketStream) -> None:
        number = self.connections_opened
        self.connections_opened += 1
        self.connections_open += 1
        # Each write shall be a segment of its own.
        raw = stream.extra_attributes[SocketAttribute.raw_socket]()
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with stream:
                connection = _Connection(stream, number)
                while (request := await connection.read_request()) is not None:
                    reply = self._take(request)
                    if not await connection.answer(request, reply):
                        break
        except* (anyio.BrokenResourceError, anyio.EndOfStream):
            pass  # The client went away, maybe in a write; its request knows when.
        finally:
            self.connections_open -= 1

    def _take(self, request: Request) -> Reply:
        self.requests.append(request)
        self._arrival.set()
        self._arrival = anyio.Event()
        fault = find_fault(request.json.get("messages")) if self._strict else None
        if fault is not None:
            error = {"message": fault, "type": "invalid_request_error", "code": None}
            body = orjson.dumps({"error": error})
            return Reply(status=400, content_type="application/json", body=body)
        script = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return script if isinstance(script, Reply) else script(request)


class _Connection:
    """HTTP/1.1 on one connection, as much of it as clients here use."""

    def __init__(self, stream: SocketStream, number: int) -> None:
        self._stream = stream
        self._number = number
        self._unread = bytearray()

    async def read_request(self) -> Request | None:
        """Returns the next request; None: the client closed the connection."""
        while (end := self._unread.find(b"\r\n\r\n")) < 0:
            try:
                self._unread += await self._stream.receive()
            except anyio.EndOfStream:
                return None
        lines = bytes(self._unread[:end]).decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ")
        pairs = (line.split(":", 1) for line in lines[1:])
        headers = {name.lower(): value.strip() for name, value in pairs}
        stop = end + 4 + int(headers.get("content-length", "0"))
        while len(self._unread) < stop:
            self._unread += await self._stream.receive()
        body = bytes(self._unread[end + 4 : stop])
        del self._unread[:stop]
        return Request(
            connection=self._number,
            method=method,
            path=path,
            headers=headers,
            body=body,
            arrived_at=anyio.current_time(),
        )

    async def answer(self, request: Request, reply: Reply) -> bool:
        """Sends `reply`; returns whether the connection goes on."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, request, group.cancel_scope)
            await self._write(request, reply)
            if reply.end == "stall":
                await anyio.sleep_forever()
            request.answered.set()
            group.cancel_scope.cancel()
        if reply.end == "reset":
            raw = self._stream.extra_attributes[SocketAttribute.raw_socket]()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        is_kept = reply.end == "clean" and reply.framing != "close"
        return is_kept and not request.disconnected.is_set()

    async def _watch(self, request: Request, writing: anyio.CancelScope) -> None:
        """Stops the writing when the client goes away."""
        try:
            while True:
                self._unread += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            request.disconnected_at = anyio.current_time()
            request.disconnected.set()
            writing.cancel()

    async def _write(self, request: Request, reply: Reply) -> None:
        if reply.hold is not None:
            await reply.hold.wait()
        await anyio.sleep(reply.before_headers_seconds)
        await self._stream.send(reply.head())
        await anyio.sleep(reply.before_body_seconds)
        is_chunked = reply.framing == "chunked"
        for data in reply.writes():
            if request.bytes_written:
                await anyio.sleep(reply.between_writes_seconds)
                # A client in the same loop gets to read this write by itself.
                for _ in range(4):
                    await checkpoint()
            frame = b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data
            await self._stream.send(frame)
            request.bytes_written += len(data)
        await anyio.sleep(reply.before_end_seconds)
        if is_chunked and reply.end == "clean":
            await self._stream.send(b"0\r\n\r\n")
