"""A client's WebSocket as a `Transport`: websockets does RFC 6455, this the flow.

websockets' own `send`, `close` and keepalive wait until the peer has read, however
long that takes. Here nothing waits for a peer without a bound: frames go ready-made
to the asyncio transport, back-pressure is its water marks, and an end that the peer
does not help with is an abort. What comes in is taken in slices, so that neither
the loop nor the memory is at the mercy of what one read can hold.
"""

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, cast

import anyio.lowlevel
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State

from protocol.codes import CloseCode
from wsserver.connections.transport import Handshake, TransportClosed
from wsserver.transports.frames import text_frames, text_header
from wsserver.transports.http import respond

HIGH_WATER_BYTES = 65_536
LOW_WATER_BYTES = 16_384
CLOSE_SECONDS = 2.0

_OPEN = State.OPEN  # looking it up in the enum is slow
_AT_ONCE_BYTES = 16_384  # the largest frame that is handled where it arrives
_SLICE_BYTES = 16_384  # 2,700 of the smallest frames: 7 ms of parsing
_PINGS = 1_000
_PING_WINDOW_SECONDS = 10.0
_PING = b"\x89\x00"
_PONG = b"\x8a"
_LONGEST_REASON_BYTES = 123
_HEAD_END = b"\r\n\r\n"
_NO_REQUEST = respond(
    HTTPStatus.BAD_REQUEST,
    "That is no request as it is answered here: HTTP/1.1, by GET or HEAD, without a"
    " body.",
).serialize()


class WebSocket(ServerConnection):
    """One client connection; implements `Transport`.

    Attributes:
        client: What is known of the client; set before the handshake is answered.
        path: Where it connected; set then, too.
        received_bytes: All bytes that came in so far.
        written_bytes: All bytes that were handed to the socket's buffer.
    """

    # Kept apart, websockets' attributes and ours take a third of what one dict takes.
    __slots__ = (
        "_at_once",
        "_dropped",
        "_end_timer",
        "_first_of_read",
        "_lost",
        "_made",
        "_max_buffered_bytes",
        "_offset",
        "_out",
        "_owed_pong",
        "_ping_timer",
        "_pings",
        "_pings_since",
        "_unread",
        "client",
        "path",
        "peer_name",
        "received_bytes",
        "written_bytes",
    )

    client: Handshake
    path: str

    def __init__(
        self,
        *args: Any,
        max_buffered_bytes: int,
        made: "Callable[[WebSocket], None]",
        lost: "Callable[[WebSocket], None]",
        **kwargs: Any,
    ) -> None:
        """Takes websockets' own arguments, and three of ours.

        Args:
            args: For `ServerConnection`.
            max_buffered_bytes: With more in the write buffer the peer is dropped.
            made: Told when the TCP connection is there.
            lost: Told when it is not any more.
            kwargs: For `ServerConnection`.
        """
        super().__init__(*args, **kwargs)
        self.peer_name: object = None
        self.received_bytes = 0
        self.written_bytes = 0
        self._max_buffered_bytes = max_buffered_bytes
        self._out: asyncio.Transport | None = None  # while frames may be written
        self._made = made
        self._lost = lost
        # Bytes of a read that have not been parsed yet, and where they begin.
        self._unread = b""
        self._offset = 0
        # Takes frames where they arrive, while somebody waits for one.
        self._at_once: Callable[[str], bool] | None = None
        self._first_of_read = False  # whether the next frame is
        # The answer to the newest ping that came while the buffer was full.
        self._owed_pong: bytes | None = None
        self._dropped = False
        self._pings = 0
        self._pings_since = 0.0
        self._ping_timer: asyncio.TimerHandle | None = None
        # Aborts the connection when its end was begun and does not come.
        self._end_timer: asyncio.TimerHandle | None = None

    @property
    def remote(self) -> str | None:
        """The address of the peer's socket; None where it left before it was asked."""
        peer = self.peer_name
        return cast("tuple[str, int]", peer)[0] if isinstance(peer, tuple) else None

    def begin(self) -> None:
        """Takes frames from now on, and lets go of headers that were read."""
        self._parse()
        for message in (self.request, self.response):
            if message is not None:
                message.headers.clear()

    def keep_pinging(self, every_seconds: float) -> None:
        """Asks the peer for a sign of life from now on, as long as it reads.

        Its pongs count as received bytes. What the kernel has taken says nothing of
        a peer that is gone.
        """
        self._ping_timer = self.loop.call_later(
            every_seconds, self._ping, every_seconds
        )

    def _ping(self, every_seconds: float) -> None:
        if self.protocol.state is _OPEN and not self.paused:
            self._put(_PING)
        self.keep_pinging(every_seconds)

    # Transport

    def write(self, frames: Sequence[bytes]) -> None:
        """Hands text frames to the socket; see `Transport`."""
        out = self._out
        if out is None or out.is_closing():
            return
        if len(frames) == 1:
            frame = frames[0]
            data = text_header(len(frame)) + frame
        else:
            data = text_frames(frames)
        self.written_bytes += len(data)
        out.write(data)
        if out.get_write_buffer_size() > self._max_buffered_bytes:
            self.abort()

    @property
    def call_soon(self) -> Callable[[Callable[[], None]], object]:
        """See `Transport.call_soon`."""
        return self.loop.call_soon

    def buffered_bytes(self) -> int:
        """Returns how much the socket has not taken yet."""
        return (self._out or self.transport).get_write_buffer_size()

    async def writable(self) -> None:
        """Waits for room in the buffer; see `Transport`."""
        try:
            await self.drain()
        except OSError:
            raise self._ended() from None
        if self.protocol.state is not _OPEN:
            raise self._ended()

    async def receive(self, at_once: Callable[[str], bool] | None = None) -> str:
        """Returns the next text frame; see `Transport`.

        Frames that were cut in pieces are joined. A binary frame ends the
        connection with 1003, bad UTF-8 with 1007, a frame above the hard limit
        with 1009.
        """
        # websockets does not yield while it has frames; a flood must not hold us.
        await anyio.lowlevel.checkpoint()
        self._at_once = at_once
        try:
            frame = await self.recv()
        except ConnectionClosed:
            raise self._ended() from None
        finally:
            self._at_once = None
        if isinstance(frame, bytes):
            await self.close(CloseCode.BINARY, "frames are text")
            raise self._ended()
        return frame

    async def close(self, code: int = CloseCode.NORMAL, reason: str = "") -> None:
        """Closes within 2 s, whatever the peer does; see `Transport`."""
        if self.protocol.state is _OPEN:
            short = reason.encode()[:_LONGEST_REASON_BYTES].decode(errors="ignore")
            self.protocol.send_close(code, short)
            self.send_data()
        self._end_soon()
        await asyncio.shield(self.connection_lost_waiter)

    def abort(self) -> None:
        """Drops the connection now."""
        self._dropped = True
        self.transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the handshake."""
        self._start(transport)
        self._meet(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends everything that waits."""
        self._lost(self)
        self._out = None
        for timer in (self._ping_timer, self._end_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what came in, as far as there is room for it."""
        self.received_bytes += len(data)
        self._unread = self._unread[self._offset :] + data
        self._offset = 0
        self._first_of_read = True
        self._parse()
        self._first_of_read = False

    def eof_received(self) -> None:
        """Ends the connection; what is in the buffer has 2 s to leave."""
        super().eof_received()
        self._end_soon()

    def resume_writing(self) -> None:
        """Lets writers go on, and pays the pong that is owed."""
        super().resume_writing()
        pong, self._owed_pong = self._owed_pong, None
        if pong is not None and self.protocol.state is _OPEN:
            self._put(pong)

    # websockets

    def process_event(self, event: Event) -> None:
        """Counts pings, and hands over a frame at once where that is wanted.

        That is one of each read and no large one: many clients that send much at the
        same moment delay others by no more than if all their frames had been queued.
        """
        if isinstance(event, Frame):
            if event.opcode is Opcode.PING:
                self._count_ping()
            elif event.opcode is Opcode.TEXT and self._first_of_read:
                self._first_of_read = False
                if self._taken_at_once(event):
                    return
        super().process_event(event)

    def send_data(self) -> None:
        """Sends what websockets has to say: the handshake, pongs, a close frame.

        It is called after whatever may change the state.

        While the buffer is full only the newest ping is answered, and that later,
        as RFC 6455, section 5.5.3, allows: pings of a peer that does not read must
        not take memory.
        """
        self._out = self.transport if self.protocol.state is _OPEN else None
        writes = self.protocol.writes
        if self.paused and writes:
            pongs = [data for data in writes if data[:1] == _PONG]
            if pongs:
                self._owed_pong = pongs[-1]
                writes = [data for data in writes if data[:1] != _PONG]
                self.protocol.writes = writes
        if self._is_no_request():
            writes.insert(0, _NO_REQUEST)
        self.written_bytes += sum(map(len, writes))
        super().send_data()

    def _start(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.recv_messages.resume = self._resume_reading

    def _meet(self, transport: asyncio.BaseTransport) -> None:
        # Asked now: later the peer may be gone, and uvloop then raises.
        self.peer_name = cast("object", transport.get_extra_info("peername"))
        self._made(self)

    def _taken_at_once(self, frame: Frame) -> bool:
        """Hands over a whole frame before which no other waits; says if it was taken."""
        take = self._at_once
        if take is None or not frame.fin or len(self.recv_messages.frames):
            return False
        if len(frame.data) > _AT_ONCE_BYTES:
            return False
        try:
            text = bytes(frame.data).decode()
        except UnicodeDecodeError:
            return False  # for whoever waits, to end the connection
        return take(text)

    def _put(self, data: bytes) -> None:
        self.written_bytes += len(data)
        self.transport.write(data)

    def _parse(self) -> None:
        while self._offset < len(self._unread) and not self.recv_messages.paused:
            start = self._offset
            if start == (end := self._readable_to()):
                return
            self._offset = min(start + _SLICE_BYTES, end)
            super().data_received(self._unread[start : self._offset])
        if self._offset >= len(self._unread):
            self._unread = b""
            self._offset = 0
        if self.protocol.close_expected():
            self._end_soon()

    def _readable_to(self) -> int:
        """Returns how far what is unread may be parsed now.

        What follows the request is no frame before that was answered, and may never
        become one: websockets would fail the connection for it, and not answer.
        """
        if self.protocol.state is not State.CONNECTING or self.protocol.eof_sent:
            return len(self._unread)
        if self.request is not None:
            return self._offset
        end = self._unread.find(_HEAD_END, self._offset)
        if end >= 0:
            return end + len(_HEAD_END)
        # The last bytes may be where that end begins.
        return max(self._offset, len(self._unread) - len(_HEAD_END) + 1)

    def _is_no_request(self) -> bool:
        """Says whether websockets is about to close for what it can't read."""
        protocol = self.protocol
        return (
            protocol.writes == [b""]
            and isinstance(protocol.handshake_exc, InvalidMessage)
            and not protocol.reader.eof
        )

    def _resume_reading(self) -> None:
        self._parse()
        if not self.recv_messages.paused:
            self.transport.resume_reading()

    def _count_ping(self) -> None:
        now = self.loop.time()
        if now - self._pings_since > _PING_WINDOW_SECONDS:
            self._pings_since = now
            self._pings = 0
        self._pings += 1
        if self._pings > _PINGS and self.protocol.state is _OPEN:
            self.protocol.fail(CloseCode.RATE, "too many pings")
            self.send_data()

    def _end_soon(self) -> None:
        if self._end_timer is None:
            self._end_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def _ended(self) -> TransportClosed:
        """Returns the end by the close frame that came first."""
        protocol = self.protocol
        ours, theirs = protocol.close_sent, protocol.close_rcvd
        if ours is not None and not protocol.close_rcvd_then_sent:
            return TransportClosed(ours.code, ours.reason, by_peer=False)
        if theirs is not None:
            return TransportClosed(theirs.code, theirs.reason)
        return TransportClosed(None, by_peer=not self._dropped)
