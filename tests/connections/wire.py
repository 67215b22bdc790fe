"""A connection without a socket: its transport, and the client at the other end."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from protocol.content import Limits, ServerInfo
from tests.fakes.rig import NoMetrics, Rig
from tests.fakes.soon import call_soon
from wsserver.auth.open import OpenAuthority
from wsserver.auth.principal import Authority, Principal, UnauthorizedError
from wsserver.connections.connection import Connection
from wsserver.connections.quotas import Quotas
from wsserver.connections.settings import ConnectionSettings
from wsserver.connections.transport import Handshake, TransportClosed

LIMITS = Limits(
    frame_bytes=262_144,
    conversations=128,
    active_turns=16,
    queued=8,
    pending_tools=32,
    tool_output_bytes=131_072,
    idempotency_s=86_400,
    frames_per_second=100,
    frames_burst=500,
)
SETTINGS = ConnectionSettings(
    server=ServerInfo(name="wsserver", version="0"), models=("test",), limits=LIMITS
)


def limited(**limits: int | None) -> ConnectionSettings:
    """Returns the settings with other limits."""
    return msgspec.structs.replace(
        SETTINGS, limits=msgspec.structs.replace(LIMITS, **limits)
    )


TIMEOUT_SECONDS = 5.0
"""For whatever has to happen; on trio's clock that is no time."""


class Wire:
    """An in-memory `Transport` that can stall, drain by hand and be cut.

    Attributes:
        frames: What the peer got.
        batches: How many times something was written.
        stalled: Whether the peer takes nothing; set by `stall` and `drain`.
        closed: The code and reason it was closed with, None while open.
        aborted: Whether it was dropped.
        hands_over: Whether frames are handled where they arrive, as on a real socket.
    """

    LOW_WATER = 16_384

    def __init__(self) -> None:
        self.received_bytes = 0
        self.written_bytes = 0
        self.frames: deque[bytes] = deque()
        self.batches = 0
        self.stalled = False
        self.closed: tuple[int, str] | None = None
        self.aborted = False
        self.most_buffered = 0
        self.hands_over = False
        self._at_once: Callable[[str], bool] | None = None
        self._buffer: deque[bytes] = deque()
        self._buffered = 0
        self._inbox: deque[bytes] = deque()
        self._changed = anyio.Event()
        self._gone: TransportClosed | None = None

    # Transport

    def write(self, frames: Sequence[bytes]) -> None:
        if self._gone is not None or self.closed is not None:
            return
        self.batches += 1
        self._buffer.extend(frames)
        size = sum(map(len, frames))
        self._buffered += size
        self.written_bytes += size
        self.most_buffered = max(self.most_buffered, self._buffered)
        if not self.stalled:
            self.drain()
        else:
            self._change()

    def call_soon(self, callback: Callable[[], None]) -> None:
        call_soon(callback)

    def buffered_bytes(self) -> int:
        return self._buffered

    async def writable(self) -> None:
        while self._buffered > self.LOW_WATER and self._gone is None:
            await self._changed.wait()
        if self._gone is not None:
            raise self._gone

    async def receive(
        self, at_once: Callable[[str], bool] | None = None
    ) -> str | bytes:
        while not self._inbox:
            if self._gone is not None:
                raise self._gone
            self._at_once = at_once
            try:
                await self._changed.wait()
            finally:
                self._at_once = None
        data = self._inbox.popleft()
        self.received_bytes += len(data)
        return data

    async def close(self, code: int, reason: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed = (code, reason)
        self._change()

    def abort(self) -> None:
        self.aborted = True
        self._change()

    # The peer

    def stall(self) -> None:
        """The peer takes nothing from now on."""
        self.stalled = True

    def drain(self, max_bytes: int | None = None) -> None:
        """The peer takes what is buffered; with a number, at most so much."""
        left = self._buffered if max_bytes is None else max_bytes
        while self._buffer and len(self._buffer[0]) <= left:
            frame = self._buffer.popleft()
            left -= len(frame)
            self._buffered -= len(frame)
            self.frames.append(frame)
        self._change()

    def flow(self) -> None:
        """The peer takes everything again."""
        self.stalled = False
        self.drain()

    def say(self, data: bytes) -> None:
        """The peer sends a frame."""
        at_once = self._at_once if self.hands_over and not self._inbox else None
        if at_once is not None and at_once(data.decode()):
            self.received_bytes += len(data)
            return
        self._inbox.append(data)
        self._change()

    def cut(self, code: int | None = None, *, by_peer: bool = True) -> None:
        """The connection is lost, or the peer closed it with a code."""
        self._gone = TransportClosed(code, by_peer=by_peer)
        self._change()

    async def changed(self) -> None:
        """Waits until something happened."""
        await self._changed.wait()

    @property
    def over(self) -> bool:
        return self._gone is not None or self.closed is not None or self.aborted

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class Client:
    """Speaks through a wire; keeps what it got and has not looked at."""

    def __init__(self, wire: Wire, connection: Connection) -> None:
        self.wire = wire
        self.connection = connection
        self._ids = 0

    def say(self, type_: str, **members: Any) -> None:
        """Sends a frame."""
        self.wire.say(msgspec.json.encode({"type": type_, **members}))

    async def frame(self, *types: str) -> dict[str, Any]:
        """Returns the next frame; with types, the next of these, dropping others."""
        with anyio.fail_after(TIMEOUT_SECONDS):
            while True:
                while self.wire.frames:
                    frame = msgspec.json.decode(self.wire.frames.popleft())
                    if not types or frame["type"] in types:
                        return frame
                await self.wire.changed()

    async def frames_through(self, seq: int) -> list[dict[str, Any]]:
        """Returns all frames up to the event with number `seq`."""
        out: list[dict[str, Any]] = []
        while not out or out[-1].get("seq", 0) < seq or out[-1]["type"] == "reply":
            out.append(await self.frame())
        return out

    async def ask(self, type_: str, **members: Any) -> dict[str, Any]:
        """Sends a command and returns its reply, dropping other frames."""
        self._ids += 1
        id_ = members.pop("id", f"{type_}-{self._ids}")
        self.say(type_, id=id_, **members)
        while (reply := await self.frame("reply"))["re"] != id_:
            pass
        return reply

    async def hello(self, **members: Any) -> dict[str, Any]:
        """Says hello and returns the next frame."""
        self.say("hello", protocol=1, **members)
        return await self.frame()

    async def ended(self) -> tuple[int, str]:
        """Waits until the server closed; returns code and reason."""
        with anyio.fail_after(1000):
            while self.wire.closed is None:
                await self.wire.changed()
        return self.wire.closed


class Tokens:
    """An authority that knows tokens, or raises what stands for them."""

    def __init__(self, **known: Principal | Exception) -> None:
        self.known = known
        self.asked: list[tuple[str, str]] = []
        self.forbidden: Exception | None = None

    async def authenticate(self, token: str | None) -> Principal:
        await anyio.lowlevel.checkpoint()
        found = self.known.get(token or "")
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise UnauthorizedError("not known")
        return found

    def stands(self, principal: Principal) -> bool:
        del principal
        return True

    def authorize(self, principal: Principal, verb: str, conversation: str) -> None:
        self.asked.append((verb, conversation))
        if self.forbidden is not None:
            raise self.forbidden


@asynccontextmanager
async def connected(
    r: Rig,
    *,
    settings: ConnectionSettings = SETTINGS,
    authority: Authority | None = None,
    handshake: Handshake | None = None,
    metrics: Any = None,
    quotas: Quotas | None = None,
    name: str = "conn1",
    wall: Callable[[], float] | None = None,
    hello: bool = True,
) -> AsyncGenerator[Client]:
    """Runs a connection over a wire; cuts it at the end."""
    wire = Wire()
    connection = Connection(
        connection=name,
        transport=wire,
        handshake=handshake or Handshake(peer="test"),
        authority=authority or OpenAuthority(),
        directory=r.directory,
        quotas=Quotas(settings) if quotas is None else quotas,
        settings=settings,
        metrics=metrics or NoMetrics(),
        alarms=r.services.alarms,
        wall=wall or r.services.clock.wall,
        new_id=lambda: f"conv_{r.services.clock.token()}",
    )
    client = Client(wire, connection)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.run)
        if hello:
            assert (await client.hello())["type"] == "welcome"
        yield client
        if not wire.over:
            wire.cut()
