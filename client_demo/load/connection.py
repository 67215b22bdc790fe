"""One WebSocket connection as it is: nothing is repeated, nothing mended."""

import socket
from collections.abc import Callable

import anyio
from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from client_demo.unreached import why_unreached
from protocol.codec import decode_server_frame, encode
from protocol.codes import NO_CLOSE_FRAME
from protocol.commands import Hello
from protocol.content import ClientInfo
from protocol.control import ErrorFrame, Welcome
from protocol.frame_error import FrameError
from protocol.ids import SUBPROTOCOL, VERSION

_GREETING_SECONDS = 30.0
_CLOSE_SECONDS = 2.0
_LONGEST_FRAME = 2**24
# So small that a client that does not read is felt by the server soon.
_SLOW_BUFFER = 8192

Clock = Callable[[], float]


class Site(Struct, frozen=True, kw_only=True):
    """Which server, and who one is there.

    Attributes:
        url: `ws://` or `wss://`, with the path.
        token: Credentials; None for none.
    """

    url: str
    token: str | None = None

    @property
    def shown(self) -> str:
        """The URL without a user and password, which may be in it."""
        scheme, between, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{between}{host.rpartition('@')[2]}{slash}{path}"


class NotConnectedError(Exception):
    """A connection could not be made; the text says why.

    Attributes:
        code: An error code of the server, or `connect_failed`, or `wait_timeout`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Pace:
    """How fast a client reads.

    Attributes:
        bytes_per_second: 0 for as fast as it goes.
        pause_until: Nothing is read before this time.
    """

    def __init__(self) -> None:
        self.bytes_per_second = 0.0
        self.pause_until = 0.0

    def is_slow(self, now: float) -> bool:
        """Whether times that are taken now would be this end's own."""
        return self.bytes_per_second > 0 or now < self.pause_until

    async def before(self) -> None:
        """Waits while nothing is to be read."""
        wait_seconds = self.pause_until - anyio.current_time()
        if wait_seconds > 0:
            await anyio.sleep(wait_seconds)

    async def after(self, size: int) -> None:
        """Waits as long as so many bytes take."""
        if self.bytes_per_second > 0:
            await anyio.sleep(size / self.bytes_per_second)


class Connection:
    """A connection that has been welcomed.

    Attributes:
        welcome: What the server said about itself.
        code: The close code; None while it lives, 1006 where none came.
        ended: Set when nothing more will come.
    """

    def __init__(self, link: ClientConnection, welcome: Welcome) -> None:
        self.welcome = welcome
        self.code: int | None = None
        self.ended = anyio.Event()
        self._link = link

    async def send(self, data: bytes) -> None:
        """Sends a frame; void where the connection is gone."""
        try:
            await self._link.send(data, text=True)
        except ConnectionClosed:
            return

    async def receive(self) -> bytes | None:
        """Returns the next frame; None when there will be none."""
        try:
            return await self._link.recv(decode=False)
        except ConnectionClosed:
            self.code = self._link.close_code or NO_CLOSE_FRAME
            return None

    def abort(self) -> None:
        """Cuts the TCP connection without a word."""
        self._link.transport.abort()

    async def close(self) -> None:
        """Says goodbye, within a bound."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._link.close()
        self.abort()


async def dial(site: Site, *, slow: bool = False) -> Connection:
    """Connects and says hello.

    Args:
        site: Where to.
        slow: This client will read slowly: the buffers before it are small.

    Raises:
        NotConnectedError: It did not work.
    """
    try:
        link = await connect(
            site.url,
            subprotocols=[SUBPROTOCOL],  # pyright: ignore[reportArgumentType]
            compression=None,
            max_size=_LONGEST_FRAME,
            max_queue=1 if slow else 64,
            open_timeout=_GREETING_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            # Who reads slowly on purpose is to be judged by the server alone.
            ping_interval=None,
        )
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as error:
        why = f"{site.shown}: {why_unreached(site.url, error)}"
        raise NotConnectedError("connect_failed", why) from error
    try:
        with anyio.fail_after(_GREETING_SECONDS):
            return Connection(link, await _greet(link, site, slow=slow))
    except TimeoutError:
        link.transport.abort()
        raise NotConnectedError("connect_failed", "no `welcome` came") from None
    except BaseException:
        link.transport.abort()
        raise


async def _greet(link: ClientConnection, site: Site, *, slow: bool) -> Welcome:
    if slow:
        raw = link.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_BUFFER)
    client = ClientInfo(name="wsserver-load")
    hello = Hello(protocol=VERSION, token=site.token, client=client)
    refused = NotConnectedError("connect_failed", "it closed before `welcome`")
    try:
        await link.send(encode(hello), text=True)
        while True:
            frame = decode_server_frame(await link.recv(decode=False))
            if isinstance(frame, Welcome):
                return frame
            if isinstance(frame, ErrorFrame):
                refused = NotConnectedError(frame.code, frame.message)
    except ConnectionClosed:
        raise refused from None
    except FrameError as error:
        raise NotConnectedError("connect_failed", f"no wsserver: {error}") from None
