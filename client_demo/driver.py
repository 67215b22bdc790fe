"""Moves bytes between the client machine and WebSockets, one after another.

The only module that knows websockets. A reader task of its own takes frames in
at once and hands them on without waiting, so a client that does nothing for
hours stays connected; a writer and a timer work beside it.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio import get_cancelled_exc_class
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
)

from client_demo.boundary import is_cancelled
from protocol.client.events import ClientEvent, DropConnection
from protocol.client.machine import ClientProtocol
from protocol.codes import NO_CLOSE_FRAME, CloseCode
from protocol.ids import SUBPROTOCOL

_CLOSE_TIMEOUT_SECONDS = 2.0
_REFUSALS = {401: CloseCode.UNAUTHORIZED, 403: CloseCode.FORBIDDEN}

TokenSource = Callable[[], Awaitable[str]]


class NoTokenError(Exception):
    """The application's function gave no credentials; the cause says why."""


async def fresh_token(new_token: TokenSource) -> str:
    """Asks the application for credentials.

    Raises:
        NoTokenError: It failed, however it did.
    """
    try:
        return await new_token()
    except Exception as error:  # the boundary to the application
        raise NoTokenError(f"there are no credentials: {error}") from error
    except get_cancelled_exc_class() as error:
        if is_cancelled():
            raise
        why = "what their function waited for was cancelled"
        raise NoTokenError(f"there are no credentials: {why}") from error


class Driver:
    """Dials, reads, writes and sleeps as the machine says, until it has stopped.

    Attributes:
        url: Where it connects.
        failure: Why the last attempt to connect failed; None after a success.
    """

    def __init__(
        self,
        url: str,
        machine: ClientProtocol,
        *,
        new_token: TokenSource | None,
        max_frame_bytes: int,
        open_timeout_seconds: float,
    ) -> None:
        """Takes what all connections have in common.

        Args:
            url: `ws://` or `wss://`, with the path.
            machine: What to drive.
            new_token: Gets credentials before each connection; None keeps those
                that the machine has.
            max_frame_bytes: The longest frame that is taken; not below the
                server's limit.
            open_timeout_seconds: How long the credentials of one attempt may take,
                and then its connection.
        """
        self.failure: Exception | None = None
        self.url = url
        self._machine = machine
        self._new_token = new_token
        self._max_frame_bytes = max_frame_bytes
        self._open_timeout_seconds = open_timeout_seconds
        self._handle: Callable[[ClientEvent], None] = _ignore
        self._socket: ClientConnection | None = None
        self._frames: list[bytes] = []
        self._writable = anyio.Event()
        self._rearmed = anyio.Event()
        self._armed: float | None = None
        self._flushing = False

    async def run(self, handle: Callable[[ClientEvent], None]) -> None:
        """Drives until the machine has stopped, or it is cancelled.

        Args:
            handle: Told every event; must not wait.
        """
        self._handle = handle
        machine = self._machine
        try:
            while machine.phase != "stopped":
                if machine.phase == "connecting":
                    await self._connection()
                else:
                    await self._wait()
        finally:
            await self._leave()

    def flush(self) -> None:
        """Takes what the machine has to say; the writer sends it."""
        if self._flushing:
            return
        self._flushing = True
        try:
            while events := self._machine.events():
                for event in events:
                    self._handle(event)
                    if isinstance(event, DropConnection):
                        self.drop()
        finally:
            self._flushing = False
        frames = self._machine.data_to_send()
        if frames:
            self._frames += frames
            self._writable.set()
        due = self._machine.next_timer()
        if due is not None and (self._armed is None or due < self._armed):
            self._rearmed.set()

    def drop(self) -> None:
        """Cuts the connection without a word, as a network does; it is made anew."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def _connection(self) -> None:
        """One connection from dialling to its end."""
        machine = self._machine
        self._frames.clear()
        try:
            if self._new_token is not None:
                machine.token = await self._fresh_token(self._new_token)
            self._socket = await self._dial()
        except (OSError, InvalidHandshake, TimeoutError, NoTokenError) as error:
            self.failure = error
            machine.disconnected(_refusal(error), anyio.current_time())
            self.flush()
            return
        self.failure = None
        machine.connected(anyio.current_time())
        async with anyio.create_task_group() as tasks:
            self.flush()
            tasks.start_soon(self._write, self._socket)
            tasks.start_soon(self._tick)
            await self._read(self._socket)
            tasks.cancel_scope.cancel()
        code = self._socket.close_code
        self._socket = None
        machine.disconnected(
            None if code == NO_CLOSE_FRAME else code, anyio.current_time()
        )
        self.flush()

    async def _fresh_token(self, new_token: TokenSource) -> str:
        seconds = self._open_timeout_seconds
        try:
            with anyio.fail_after(seconds):
                return await fresh_token(new_token)
        except TimeoutError:
            why = f"there are no credentials after {seconds:g} s"
            raise NoTokenError(why) from None

    async def _dial(self) -> ClientConnection:
        return await connect(
            self.url,
            subprotocols=[SUBPROTOCOL],  # pyright: ignore[reportArgumentType]
            compression=None,
            max_size=self._max_frame_bytes,
            open_timeout=self._open_timeout_seconds,
            close_timeout=_CLOSE_TIMEOUT_SECONDS,
            # The machine judges liveness by what arrives; a ping that is not
            # answered in time would end a slow connection that lives.
            ping_interval=None,
        )

    async def _read(self, socket: ClientConnection) -> None:
        machine = self._machine
        try:
            while True:
                data = await socket.recv(decode=False)
                machine.received(data, anyio.current_time())
                self.flush()
        except ConnectionClosed:
            return

    async def _write(self, socket: ClientConnection) -> None:
        try:
            while True:
                while self._frames:
                    frames, self._frames = self._frames, []
                    for frame in frames:
                        await socket.send(frame, text=True)
                self._writable = anyio.Event()
                await self._writable.wait()
        except ConnectionClosed:
            return

    async def _tick(self) -> None:
        while True:
            await self._wait()

    async def _wait(self) -> None:
        """Waits for the machine's next deadline, and lets it act."""
        self._rearmed = anyio.Event()
        due = self._armed = self._machine.next_timer()
        limit_seconds = None if due is None else due - anyio.current_time()
        with anyio.move_on_after(limit_seconds):
            await self._rearmed.wait()
        self._machine.timer(anyio.current_time())
        self.flush()

    async def _leave(self) -> None:
        """Sends what was given last and says goodbye, within a bound."""
        socket, self._socket = self._socket, None
        if socket is None:
            return
        with anyio.move_on_after(_CLOSE_TIMEOUT_SECONDS, shield=True):
            try:
                for frame in self._frames:
                    await socket.send(frame, text=True)
            except ConnectionClosed:
                return
            await socket.close()
        socket.transport.abort()


def _ignore(event: ClientEvent) -> None:
    del event


def _refusal(error: Exception) -> CloseCode | None:
    if isinstance(error, InvalidStatus):
        return _REFUSALS.get(error.response.status_code)
    return None
