"""A client's transport with somebody in the middle: who records, and may spoil.

It does to a connection what bad networks and bad software do: cuts it, makes it
slow, gives the server a command twice, gives the client an event twice or not at
all. Frames are recorded when they arrive from the client, and when they leave for
it, so the times are those of the network as the server sees it.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import anyio

from wsserver.connections.transport import Transport, TransportClosed
from wsserver.inspector.recorder import Recorder
from wsserver.inspector.records import EndedBy, Inbound, Outbound, is_event
from wsserver.inspector.redact import members

HELD_FRAMES = 64
"""So many frames of the client are on their way before it is read no further."""

_ROOM_BYTES = 16_384

_Arrival = tuple[float, str | bytes | TransportClosed]


class Tap:
    """Stands between a connection and its transport; implements `Transport`.

    Attributes:
        in_ms: How long a frame from the client takes.
        out_ms: How long a frame to the client takes.
    """

    def __init__(self, connection: str, inner: Transport, recorder: Recorder) -> None:
        """Makes a tap; `tapped` runs it."""
        self.in_ms = 0
        self.out_ms = 0
        self._connection = connection
        self._inner = inner
        self._recorder = recorder
        self._arrivals, self._arrived = anyio.create_memory_object_stream[_Arrival](
            HELD_FRAMES
        )
        self._held = deque[tuple[float, Sequence[bytes]]]()  # and when they are due
        self._held_bytes = 0
        self._holding = anyio.Event()
        self._let_go = anyio.Event()
        # What to do to the next frame that it can be done to.
        self._duplicate = False
        self._spoil: Literal["repeated", "lost"] | None = None
        self._ended_by: EndedBy | None = None

    # Transport

    @property
    def received_bytes(self) -> int:
        """See `Transport`."""
        return self._inner.received_bytes

    @property
    def written_bytes(self) -> int:
        """See `Transport`; with what is held."""
        return self._inner.written_bytes + self._held_bytes

    def write(self, frames: Sequence[bytes]) -> None:
        """Lets frames go, now or later; see `Transport`."""
        if not self.out_ms and not self._held:
            self._depart(frames)
            return
        self._held_bytes += sum(map(len, frames))
        due = anyio.current_time() + self.out_ms / 1000
        self._held.append((due, list(frames)))
        self._holding.set()

    @property
    def call_soon(self) -> Callable[[Callable[[], None]], object]:
        """See `Transport`."""
        return self._inner.call_soon

    def buffered_bytes(self) -> int:
        """See `Transport`; with what is held."""
        return self._inner.buffered_bytes() + self._held_bytes

    async def writable(self) -> None:
        """See `Transport`."""
        while self._held_bytes > _ROOM_BYTES:
            await self._let_go.wait()
        await self._inner.writable()

    async def receive(
        self,
        at_once: Callable[[str], bool] | None = None,
    ) -> str | bytes:
        """See `Transport`."""
        due, frame = await self._arrived.receive()
        if due > anyio.current_time():
            await anyio.sleep_until(due)
        if isinstance(frame, TransportClosed):
            raise frame
        return frame

    async def close(self, code: int, reason: str) -> None:
        """See `Transport`; what is held goes first, at once."""
        while self._held:
            self._release()
        self._ended("server", code)
        await self._inner.close(code, reason)

    def abort(self) -> None:
        """See `Transport`."""
        self._ended("server", None)
        self._inner.abort()

    # What somebody at the inspector may do

    def drop(self) -> None:
        """Cuts the connection, without a close frame."""
        self._ended("inspector", None)
        self._inner.abort()

    def duplicate(self) -> None:
        """Gives the server the client's next command twice."""
        self._duplicate = True

    def repeat(self) -> None:
        """Gives the client its next event twice, which the protocol forbids."""
        self._spoil = "repeated"

    def lose(self) -> None:
        """Keeps the next event from the client, which the protocol forbids."""
        self._spoil = "lost"

    # Tasks

    async def read(self) -> None:
        """Takes what comes from the client, until it has ended."""
        while True:
            try:
                frame = await self._inner.receive()
            except TransportClosed as closed:
                self._ended("client" if closed.by_peer else "server", closed.code)
                await self._arrive(closed)
                return
            self._recorder.frame(Inbound, self._connection, frame)
            await self._arrive(frame)
            if self._duplicate and "id" in (members(frame) or ()):
                self._duplicate = False
                self._recorder.frame(Inbound, self._connection, frame, "duplicated")
                await self._arrive(frame)

    async def release(self) -> None:
        """Lets go what was held, each when its time has come."""
        while True:
            await self._holding.wait()
            self._holding = anyio.Event()
            while self._held:
                due, _ = self._held[0]
                if due > anyio.current_time():
                    await anyio.sleep_until(due)
                else:
                    self._release()

    def end(self) -> None:
        """Writes down that it is over, if nobody has said so."""
        self._ended("server", None)
        self._arrivals.close()
        self._arrived.close()

    async def _arrive(self, frame: str | bytes | TransportClosed) -> None:
        due = anyio.current_time() + self.in_ms / 1000
        await self._arrivals.send((due, frame))

    def _release(self) -> None:
        _, frames = self._held.popleft()
        self._depart(frames)
        self._held_bytes -= sum(map(len, frames))
        self._let_go.set()
        self._let_go = anyio.Event()

    def _depart(self, frames: Sequence[bytes]) -> None:
        if self._ended_by is not None:
            return  # they go nowhere
        if self._spoil is not None:
            frames = self._spoiled(frames)
        else:
            for frame in frames:
                self._recorder.frame(Outbound, self._connection, frame)
        self._inner.write(frames)

    def _spoiled(self, frames: Sequence[bytes]) -> list[bytes]:
        out: list[bytes] = []
        for frame in frames:
            fault = self._spoil if is_event(members(frame) or {}) else None
            if fault is None:
                self._recorder.frame(Outbound, self._connection, frame)
                out.append(frame)
                continue
            self._spoil = None
            if fault == "repeated":
                self._recorder.frame(Outbound, self._connection, frame)
                out += (frame, frame)
            self._recorder.frame(Outbound, self._connection, frame, fault)
        return out

    def _ended(self, by: EndedBy, code: int | None) -> None:
        if self._ended_by is None:
            self._ended_by = by
            self._recorder.closed(self._connection, by, code)


@asynccontextmanager
async def tapped(
    connection: str, inner: Transport, recorder: Recorder
) -> AsyncGenerator[Tap]:
    """Gives a tap to be used in the transport's place, while the context is open."""
    tap = Tap(connection, inner, recorder)
    recorder.opened(connection)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tap.read)
            tasks.start_soon(tap.release)
            yield tap
            tasks.cancel_scope.cancel()
    finally:
        tap.end()
