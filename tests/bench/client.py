"""Clients that cost almost nothing: they count frames and look into few.

A benchmark's clients share two cores with what is measured, so they parse frame
heads only; the first and the last frame of an answer are decoded. Each token's
arrival is compared with the moment its stream's pace gives, which yields the
added latency without a clock in the frames.
"""

import asyncio
import base64
import os
from collections.abc import Callable
from typing import cast

import orjson


class WebSocketCounter(asyncio.Protocol):
    """One WebSocket client; `on_frame` sees each text frame's payload."""

    def __init__(
        self, path: str, on_open: Callable[["WebSocketCounter"], None]
    ) -> None:
        self.frames = 0
        self.bytes = 0
        self.on_frame: Callable[[bytes], None] = lambda _: None
        self.lost = asyncio.get_running_loop().create_future()
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

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)

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
        self.bytes += size
        while size - begin >= 2:
            length = buffer[begin + 1]
            payload = begin + 2
            if length == 126:
                payload = begin + 4
                if payload > size:
                    break
                length = int.from_bytes(buffer[begin + 2 : payload], "big")
            elif length == 127:
                payload = begin + 10
                if payload > size:
                    break
                length = int.from_bytes(buffer[begin + 2 : payload], "big")
            if payload + length > size:
                break
            if buffer[begin] == 0x81:
                self.frames += 1
                self.on_frame(buffer[payload : payload + length])
            elif buffer[begin] == 0x89:
                self._write(0x8A, buffer[payload : payload + length])
            begin = payload + length
        self._buffer = buffer[begin:]

    def send(self, **frame: object) -> None:
        """Sends a JSON text frame."""
        self._write(0x81, orjson.dumps(frame))

    def send_text(self, text: str) -> None:
        """Sends a text frame."""
        self._write(0x81, text.encode())

    def close(self) -> None:
        """Drops the connection."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Stops reading."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Goes on reading."""
        if self._transport is not None:
            self._transport.resume_reading()

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
