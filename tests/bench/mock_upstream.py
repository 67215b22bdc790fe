"""A chat upstream that is much faster than anything that relays it.

It answers `POST .../chat/completions` with chunks of about 250 bytes. The model's
name says how; `bench:tokens=200,rate=30` streams 200 chunks, the first at once and
then 30 a second. `rate=0` writes as fast as the socket takes them, 64 chunks a write.
`stamp=1` puts the moment of the write into the chunk's text: `@` and 16 digits,
microseconds of CLOCK_MONOTONIC, which all processes of a machine share. `text=4000`
makes the text that long. `id=7` names the stream.

`GET /closed` tells for each id when the stream was closed before its end. `GET /finish`
ends all paced streams now, and tells how many chunks they had.

All paced streams share one timer, and a token is one `send` of ready bytes. What that
costs is the row `upstream` of the benchmark.

Run as `python -m tests.bench.mock_upstream`; prints its port, ends with its input.
"""

import asyncio
import gc
import os
import re
import sys
import time
from functools import cache
from typing import cast

import msgspec
import orjson

from tests.bench.loop import run
from tests.bench.wheel import TICK_SECONDS, Wheel

CHUNK_TEXT = " token"
FLOOD_CHUNKS = 64
_GOLDEN = 0.618034
_STAMP = b"@0000000000000000"
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\n\r\n"
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's name asks for; see the module."""

    tokens: int = 100
    rate: float = 30
    stamp: bool = False
    text: int = 0
    id: str = ""


def options(model: str) -> Options:
    """Returns what a model's name asks for."""
    parts = (part.split("=") for part in model.partition(":")[2].split(",") if part)
    return msgspec.convert(dict(parts), Options, strict=False)


def _http_chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    data = {
        "id": "chatcmpl-9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "bench-model-for-measurements",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [
            {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        ],
    }
    return _http_chunk(b"data: " + orjson.dumps(data) + b"\n\n")


_FIRST = _HEAD + _chunk({"role": "assistant", "content": ""})
_BEFORE, _AFTER = _chunk({"content": _STAMP.decode()}).split(_STAMP)


@cache
def _token(text_bytes: int) -> bytes:
    text = CHUNK_TEXT.ljust(text_bytes, "x")
    return _chunk({"content": text})


def _last(tokens: int) -> bytes:
    usage: dict[str, object] = {
        "choices": [],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": tokens,
            "total_tokens": tokens + 10,
        },
    }
    return (
        _chunk({}, "stop")
        + _http_chunk(b"data: " + orjson.dumps(usage) + b"\n\n")
        + _http_chunk(b"data: [DONE]\n\n")
        + b"0\r\n\r\n"
    )


class Streams:
    """All streams that run, under one timer."""

    def __init__(self) -> None:
        self.closed_us: dict[str, int] = {}
        self.count = 0
        self._wheel: Wheel[Stream] = Wheel()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: "Stream", at: float) -> None:
        """Calls `advance` of the stream at that time."""
        if self._timer is None:
            self._wheel.due(asyncio.get_running_loop().time())
            self._timer = asyncio.get_running_loop().call_later(
                TICK_SECONDS, self._tick
            )
        self._wheel.add(stream, at)

    def finish(self) -> int:
        """Ends all streams; returns how many chunks they had."""
        return sum(stream.finish() for stream in self._wheel.clear())

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for stream in self._wheel.due(now):
            stream.advance(now)
        more = bool(self._wheel)
        self._timer = loop.call_later(TICK_SECONDS, self._tick) if more else None


class Stream(asyncio.Protocol):
    """One connection; answers one request after another."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._transport: asyncio.Transport | None = None
        self._fd = -1
        self._data = b""
        self._asked = Options()
        self._left = 0
        self._next_at = 0.0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._fd = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._left:
            self._streams.closed_us[self._asked.id] = time.monotonic_ns() // 1000
        self._transport = None
        self._left = 0

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if not self._asked.rate:
            self._flood()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            size = int(length[1]) if length else 0
            if len(rest) < size:
                return
            self._data = rest[size:]
            if head.startswith(b"GET"):
                self._tell(head.split(b" ")[1])
            else:
                self._stream(options(orjson.loads(rest[:size])["model"]))

    def _tell(self, path: bytes) -> None:
        assert self._transport is not None
        if path == b"/finish":
            told = orjson.dumps(self._streams.finish())
        else:
            told = orjson.dumps(self._streams.closed_us)
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told)
        )

    def _stream(self, asked: Options) -> None:
        assert self._transport is not None
        self._asked, self._left = asked, asked.tokens
        self._transport.write(_FIRST)
        if not asked.rate:
            self._flood()
            return
        # Streams that began together are spread over a period.
        self._streams.count += 1
        spread = self._streams.count * _GOLDEN % 1
        now = asyncio.get_running_loop().time()
        self._next_at = now - spread / asked.rate
        self.advance(now)

    def advance(self, now: float) -> None:
        """Writes what is due and asks for the next time."""
        if self._transport is None or not self._left:
            return
        rate = self._asked.rate
        count = min(int((now - self._next_at) * rate) + 1, self._left)
        self._next_at += count / rate
        self._left -= count
        self._send(self._chunks(count))
        if self._left:
            self._streams.add(self, self._next_at)
        else:
            self._transport.write(_last(self._asked.tokens))

    def finish(self) -> int:
        """Ends the stream here; returns how many chunks it had, 0 if it is over."""
        if self._transport is None or not self._left:
            return 0
        sent = self._asked.tokens - self._left
        self._left = 0
        self._transport.write(_last(sent))
        return sent

    def _chunks(self, count: int) -> bytes:
        if self._asked.stamp:
            stamp = b"@%016d" % (time.monotonic_ns() // 1000)
            return (_BEFORE + stamp + _AFTER) * count
        return _token(self._asked.text) * count

    def _send(self, data: bytes) -> None:
        """Sends at once: the event loop would wait for its turn's end."""
        assert self._transport is not None
        if not self._transport.get_write_buffer_size():
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # the peer is gone, and the event loop says so soon
        if data:
            self._transport.write(data)

    def _flood(self) -> None:
        while self._left and not self._paused and self._transport is not None:
            count = min(self._left, FLOOD_CHUNKS)
            self._transport.write(self._chunks(count))
            self._left -= count
            if not self._left:
                self._transport.write(_last(self._asked.tokens))


async def _main() -> None:
    gc.disable()
    streams = Streams()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Stream(streams), "127.0.0.1", 0, backlog=4096
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    run(_main())
