"""A WebSocket client that costs almost nothing: it takes frames apart, no more."""

import asyncio
import base64
import os
from collections.abc import Callable
from typing import cast

import orjson

_TEXT, _PING, _PONG = 0x81, 0x89, 0x8A


def _frame(buffer: bytes, begin: int, size: int) -> tuple[int, int] | None:
    """Returns where the payload of a server's frame begins and ends, if all is here."""
    if size - begin < 2:
        return None
    length, payload = buffer[begin + 1], begin + 2
    if length >= 126:
        payload += 2 if length == 126 else 8
        if payload > size:
            return None
        length = int.from_bytes(buffer[begin + 2 : payload], "big")
    end = payload + length
    return None if end > size else (payload, end)


class WebSocketCounter(asyncio.Protocol):
    """One WebSocket client.

    Attributes:
        bytes: What it received.
        on_frame: Called with each text frame's payload.
    """

    def __init__(
        self, path: str, on_open: Callable[["WebSocketCounter"], None]
    ) -> None:
        self.bytes = 0
        self.on_frame: Callable[[bytes], None] = lambda _: None
        self._path = path
        self._on_open = on_open
        self._buffer = b""
        self._open = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: wsserver.v1\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._open:
            head, found, buffer = buffer.partition(b"\r\n\r\n")
            if not found:
                self._buffer = head
                return
            assert b" 101 " in head.split(b"\r\n")[0], head
            self._open = True
            self._on_open(self)
        begin, size = 0, len(buffer)
        self.bytes += len(data)
        while (bounds := _frame(buffer, begin, size)) is not None:
            payload, end = bounds
            if buffer[begin] == _TEXT:
                self.on_frame(buffer[payload:end])
            elif buffer[begin] == _PING:
                self._write(_PONG, buffer[payload:end])
            begin = end
        self._buffer = buffer[begin:]

    def send(self, **frame: object) -> None:
        """Sends a JSON text frame."""
        self._write(_TEXT, orjson.dumps(frame))

    def send_text(self, text: str) -> None:
        """Sends a text frame."""
        self._write(_TEXT, text.encode())

    def close(self) -> None:
        """Drops the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, opcode: int, payload: bytes) -> None:
        # A mask of zeros is a valid mask, and leaves the payload as it is.
        size = len(payload)
        if size < 126:
            head = bytes((opcode, 0x80 | size))
        elif size < 65_536:
            head = bytes((opcode, 0x80 | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((opcode, 0x80 | 127)) + size.to_bytes(8, "big")
        if self._transport is not None:
            self._transport.write(head + b"\0\0\0\0" + payload)


async def connect(port: int, path: str) -> WebSocketCounter:
    """Connects to a relay on loopback."""
    opened = asyncio.Event()
    _, protocol = await asyncio.get_running_loop().create_connection(
        lambda: WebSocketCounter(path, lambda _: opened.set()), "127.0.0.1", port
    )
    await asyncio.wait_for(opened.wait(), 20)
    return protocol
