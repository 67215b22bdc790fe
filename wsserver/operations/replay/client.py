"""One connection of a replay: says what it is told to, and acknowledges what comes."""

from collections.abc import Callable
from contextlib import suppress

import orjson
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from protocol.codes import NO_CLOSE_FRAME
from wsserver.inspector.records import is_event
from wsserver.operations.server_frame import Frame, read_frame

ACK_BYTES = 512
"""After so many bytes of events they are acknowledged: half the smallest window."""

_SENDABLE = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011})
_OWN = 3000


class Client:
    """One connection.

    Attributes:
        name: As the recording names it.
        code: With which code it has ended; None while it is open.
    """

    def __init__(self, name: str, socket: ClientConnection) -> None:
        self.name = name
        self.code: int | None = None
        self._socket = socket
        self._unacknowledged = 0

    def drop(self) -> None:
        """Cuts the connection."""
        self._socket.transport.abort()

    async def end(self, code: int | None) -> None:
        """Closes with a code; cuts where that can't be sent."""
        if code in _SENDABLE or (code or 0) >= _OWN:
            await self._socket.close(code or 0)
        else:
            self.drop()

    async def say(self, data: str) -> None:
        """Sends a text frame; nothing once the connection has ended."""
        with suppress(ConnectionClosed):  # how it ended is compared elsewhere
            await self._socket.send(data)

    async def listen(self, shown: Callable[["Client", Frame], None]) -> None:
        """Hands over what comes until the connection has ended.

        Raises:
            FrameError: The server sent what is no frame.
        """
        with suppress(ConnectionClosed):
            async for data in self._socket:
                frame = read_frame(data)
                shown(self, frame)
                await self._acknowledge(frame, len(data))
        self.code = self._socket.close_code or NO_CLOSE_FRAME

    async def _acknowledge(self, frame: Frame, size: int) -> None:
        if not is_event(frame):
            return
        self._unacknowledged += size
        if self._unacknowledged >= ACK_BYTES:
            self._unacknowledged = 0
            name, seq = frame["conversation"], frame["seq"]
            ack = {"type": "ack", "conversation": name, "seq": seq}
            await self.say(orjson.dumps(ack).decode())
