"""Asks the mock upstream what it saw, and ends what it streams."""

import asyncio

import orjson


async def closed_us(port: int) -> dict[str, int]:
    """Returns when streams were closed before their end, by their ids."""
    return orjson.loads(await _get(port, b"/closed"))


async def finish(port: int) -> int:
    """Ends all paced streams; returns how many chunks they had together."""
    return orjson.loads(await _get(port, b"/finish"))


async def _get(port: int, path: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.rpartition(b"Content-Length:")[2])
    body = await reader.readexactly(length)
    writer.close()
    return body
