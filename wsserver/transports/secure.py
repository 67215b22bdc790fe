"""A client's WebSocket over TLS: the handshake first, then it is as any other.

An event loop that listens with TLS tells nobody of a connection before its handshake is
done, nor of one whose handshake fails. So it listens without, and each connection is
known, counted and bounded from its first byte on.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

import anyio
import structlog
from anyio.abc import TaskGroup

from wsserver.transports.websocket import CLOSE_SECONDS, WebSocket

FILES_AT_FIRST = 2
"""How many each takes in the moment in which it is accepted."""

log = structlog.get_logger(__name__)


class SecureWebSocket(WebSocket):
    """One client connection over TLS; implements `Transport`."""

    __slots__ = (
        "_context",
        "_handshake",
        "_late",
        "_open_seconds",
        "_secured",
        "_tasks",
    )

    def __init__(
        self,
        *args: Any,
        context: ssl.SSLContext,
        open_seconds: float,
        late: Callable[[], None],
        tasks: TaskGroup,
        **kwargs: Any,
    ) -> None:
        """Takes what `WebSocket` takes, and four of its own.

        Args:
            args: For `WebSocket`.
            context: Certificate and key.
            open_seconds: How long the handshake may take.
            late: Told when it took longer.
            tasks: Runs it.
            kwargs: For `WebSocket`.
        """
        super().__init__(*args, **kwargs)
        self._context = context
        self._handshake = anyio.CancelScope()
        self._open_seconds = open_seconds
        self._late = late
        self._tasks = tasks
        self._secured = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the TCP connection, and later the one over TLS."""
        if transport.get_extra_info("ssl_object") is not None:
            self._secured = True
            self._start(transport)
            return
        plain = self.transport = cast("asyncio.Transport", transport)
        self._meet(plain)
        own = None if plain.is_closing() else _taken_from(plain)
        if own is None:
            self._lost(self)
        else:
            self._tasks.start_soon(self._secure, own)
        plain.set_protocol(asyncio.Protocol())
        plain.abort()

    def abort(self) -> None:
        """Drops the connection now."""
        self._handshake.cancel()
        super().abort()

    async def _secure(self, own: socket.socket) -> None:
        try:
            await self._shake_hands(own)
        except Exception:
            # The boundary of a handshake: for a defect in it only this client pays.
            log.exception("handshake_defective")
        finally:
            if not self._secured:
                self._lost(self)

    async def _shake_hands(self, own: socket.socket) -> None:
        try:
            with self._handshake:
                await self.loop.connect_accepted_socket(
                    lambda: self,
                    own,
                    ssl=self._context,
                    ssl_handshake_timeout=self._open_seconds,
                    ssl_shutdown_timeout=CLOSE_SECONDS,
                )
        except OSError as error:
            if isinstance(error, ConnectionAbortedError):
                self._late()
            log.debug("handshake_failed", about=str(error))


def _taken_from(plain: asyncio.Transport) -> socket.socket | None:
    """Returns the connection's socket for itself; None where no file is left for it.

    Loops begin TLS with a socket: what a transport has read by then would be lost.
    """
    accepted = plain.get_extra_info("socket")
    try:
        return socket.fromfd(accepted.fileno(), accepted.family, accepted.type)
    except OSError:
        return None
