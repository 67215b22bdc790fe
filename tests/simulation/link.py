"""A connection in memory that is slow, that is cut at any byte, that lies.

One end is the server's `Transport`, the other the client's socket. What was
handed over before a cut may arrive or may not; a frame that is cut in two is
lost. Either end may learn of the cut late.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
from msgspec import Struct

from tests.fakes.soon import call_soon
from tests.simulation.watch import Watch
from wsserver.connections.transport import TransportClosed

PING_BYTES = 6


class Traits(Struct, frozen=True, kw_only=True):
    """How a link is.

    Attributes:
        up_seconds: How long a frame takes to the server.
        down_seconds: How long one takes to the client.
        socket_bytes: How much the client's socket takes that is not read.
        ping_seconds: How often the transport pings the peer; None for never.
    """

    up_seconds: float = 0.0
    down_seconds: float = 0.0
    socket_bytes: int = 65_536
    ping_seconds: float | None = None


class Link:
    """Both ends of one connection.

    Attributes:
        written_bytes: See `Transport`.
        lost: Whether it was cut, whoever knows of it.
        code: What the client was told at the end; None for nothing.
        ended: Whether the client knows that it is over.
        frames: How many came through in both directions, until it was disarmed.
        severed_with: It is lost with this one of them; None for never.
    """

    def __init__(self, traits: Traits, watch: Watch, wake: Callable[[], None]) -> None:
        self.written_bytes = 0
        self.lost = False
        self.ended = False
        self.code: int | None = None
        self.frames = 0
        self.severed_with: int | None = None
        self._traits = traits
        self._watch = watch
        self._wake = wake
        self._opened_at = self._alive_until = anyio.current_time()
        self._down: deque[tuple[float, bytes]] = deque()
        self._unread = 0
        self._up: deque[tuple[float, bytes]] = deque()
        self._heard_bytes = 0
        self._changed = anyio.Event()
        self._tell_server_at: float | None = None
        self._armed = True
        self._cut_down: int | None = None
        self._cut_up: int | None = None
        self._silent = False
        self._late = 0.0
        self._arriving = 0
        self._closed = False
        self._reading = True

    # Transport

    @property
    def received_bytes(self) -> int:
        """What came in; pongs too, where the transport pings."""
        every = self._traits.ping_seconds
        if every is None:
            return self._heard_bytes
        if not self.lost and self._reading:
            self._alive_until = anyio.current_time()
        pongs = int((self._alive_until - self._opened_at) / every)
        return self._heard_bytes + PING_BYTES * pongs

    def write(self, frames: Sequence[bytes]) -> None:
        if self._closed or self._server_knows:
            return
        self._watch.sent(frames)
        arrives = anyio.current_time() + self._traits.down_seconds
        for frame in frames:
            self._down.append((arrives, frame))
            self._unread += len(frame)
            self.written_bytes += len(frame)
        self._wake()

    def call_soon(self, callback: Callable[[], None]) -> None:
        call_soon(callback)

    def buffered_bytes(self) -> int:
        return max(0, self._unread - self._traits.socket_bytes)

    async def writable(self) -> None:
        while self.buffered_bytes() > 0:
            if self._server_knows or self._closed:
                raise TransportClosed(None)
            await self._change()

    async def receive(self, at_once: Callable[[str], bool] | None = None) -> bytes:
        while True:
            if self._up:
                arrives, frame = self._up[0]
                if arrives > anyio.current_time():
                    await anyio.sleep_until(arrives)
                    continue  # it may have been lost meanwhile
                self._up.popleft()
                self._heard_bytes += len(frame)
                self._watch.heard(frame)
                # As on a real socket: some frames are handled where they arrive.
                if at_once is None or len(frame) % 2 or not at_once(frame.decode()):
                    return frame
                continue
            if self._server_knows or self._closed:
                raise TransportClosed(None)
            await self._change()

    async def close(self, code: int, reason: str) -> None:
        del reason
        self._closed = True
        self.code = code
        self._wake()
        if self.lost or not self._reading:
            await anyio.sleep(2.0)
            self.abort()
        else:
            await anyio.lowlevel.checkpoint()

    def abort(self) -> None:
        self._closed = True
        self.code = None
        self._down.clear()
        self._wake()

    # The client's end

    @property
    def next_arrival(self) -> float | None:
        """When the next frame arrives; None while none is under way."""
        return self._down[0][0] if self._down and not self._vanished else None

    @property
    def unanswered(self) -> bool:
        """Whether something is on its way up, or waits for its reply."""
        return bool(self._up) or bool(self._watch.unanswered())

    def take(self) -> list[bytes]:
        """Takes what has arrived."""
        out: list[bytes] = []
        now = anyio.current_time()
        while self._down and self._down[0][0] <= now and not self._vanished:
            frame = self._down.popleft()[1]
            if self._severed():
                break
            if self._cut_down is not None:
                self._cut_down -= len(frame)
                if self._cut_down < 0:
                    self._lose()
                    break
            self._unread -= len(frame)
            out.append(frame)
        if out:
            self._move()
        if self._closed and not self._vanished and not self._down:
            self.ended = True
        return out

    def say(self, frames: Sequence[bytes]) -> None:
        """Sends frames to the server."""
        if self.lost or self._closed:
            return
        arrives = anyio.current_time() + self._traits.up_seconds
        for frame in frames:
            if self._severed():
                return
            if self._cut_up is not None:
                self._cut_up -= len(frame)
                if self._cut_up < 0:
                    self._lose()
                    return
            self._up.append((arrives, frame))
        self._move()

    def pause(self, reading: bool) -> None:
        """Whether the client reads."""
        self._reading = reading

    def hang_up(self) -> None:
        """The client drops the connection."""
        if not self.lost:
            self._lose()

    def cut(self, chance: random.Random) -> None:
        """Cuts the connection, after some more bytes in one direction."""
        self._silent = chance.random() < 0.2
        self._late = chance.choice(
            [0.0, 0.0, chance.uniform(0, 3), chance.uniform(0, 90)]
        )
        self._arriving = chance.choice([0, 1, 1000])
        match chance.randrange(3):
            case 0:
                self._cut_down = chance.choice([0, 50, 500, 5000])
                self._cut_down = chance.randint(0, self._cut_down)
            case 1:
                self._cut_up = chance.randint(0, 400)
            case _:
                self._lose()

    def disarm(self) -> None:
        """Takes back a cut that has not come yet."""
        self._cut_down = self._cut_up = self.severed_with = None
        self._armed = False

    # Inside

    @property
    def _server_knows(self) -> bool:
        at = self._tell_server_at
        return at is not None and anyio.current_time() >= at

    @property
    def _vanished(self) -> bool:
        """Whether it is gone and the client does not know."""
        return self.lost and self._silent

    def _severed(self) -> bool:
        """Counts a frame; says whether the connection is lost with it."""
        if self.frames == self.severed_with:
            self._late = (0.0, 0.5, 40.0)[self.frames % 3]
            self._lose()
            return True
        self.frames += self._armed
        return False

    def _lose(self) -> None:
        self.lost = True
        now = anyio.current_time()
        self._tell_server_at = now + self._late
        while len(self._up) > self._arriving:
            self._up.pop()
        if self._silent:
            self._down.clear()
        else:
            self.ended = True
        self._alive_until = now
        self._move()
        self._wake()

    def _move(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _change(self) -> None:
        at = self._tell_server_at
        if at is None:
            await self._changed.wait()
        else:
            with anyio.CancelScope(deadline=at):
                await self._changed.wait()
