"""A chat upstream that is much faster than anything that relays it.

It answers `POST .../chat/completions` with chunks of about 250 bytes, made once.
The model's name says how: `bench:tokens=200,rate=30` streams 200 chunks, 30 a
second; `rate=0` writes as fast as the socket takes them. All streams share one
timer, and each write is one `send` of ready bytes, so that its cost per token is
below 10 µs (`python -m tests.bench upstream` shows it).

Run as `python -m tests.bench.mock_upstream`; prints its port.
"""

import asyncio
import contextlib
import re
import sys
from typing import cast

import orjson

CHUNK_TEXT = " token"
TICK_SECONDS = 0.002

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\n\r\n"
)


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


def _http_chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


TOKEN = _chunk({"content": CHUNK_TEXT})
FIRST = _HEAD + _chunk({"role": "assistant", "content": ""})


def last(tokens: int) -> bytes:
    """Returns the end of a stream, with its usage and the end of the body."""
    usage = {
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
        self.paced: list[Stream] = []
        self.tokens = 0
        self.open = 0
        self.closed_early = 0
        self.last_close_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: "Stream") -> None:
        """Takes a stream in; starts the timer for the first one."""
        self.paced.append(stream)
        if self._timer is None:
            self._tick()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        kept: list[Stream] = []
        for stream in self.paced:
            if stream.advance(now):
                kept.append(stream)
        self.paced = kept
        self._timer = loop.call_later(TICK_SECONDS, self._tick) if kept else None


class Stream(asyncio.Protocol):
    """One connection; answers one request after another."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._left = 0
        self._total = 0
        self._period = 0.0
        self._next_at = 0.0
        self._paused = False
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:

        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._busy:
            self._busy = False
            self._streams.open -= 1
            self._streams.closed_early += 1
            self._streams.last_close_at = asyncio.get_running_loop().time()
        self._transport = None
        self._left = 0

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._period == 0.0:
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
            self._answer(head, rest[:size])

    def _answer(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        if head.startswith(b"GET"):
            stats = orjson.dumps(
                {
                    "tokens": self._streams.tokens,
                    "open": self._streams.open,
                    "closed_early": self._streams.closed_early,
                    "last_close_at": self._streams.last_close_at,
                }
            )
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
            self._transport.write(answer % (len(stats), stats))
            return
        model = orjson.loads(body)["model"]
        options = dict(
            part.split("=") for part in model.partition(":")[2].split(",") if part
        )
        self._total = self._left = int(options.get("tokens", 100))
        rate = float(options.get("rate", 30))
        self._period = 1 / rate if rate else 0.0
        self._busy = True
        self._streams.open += 1
        self._transport.write(FIRST)
        if self._period == 0.0:
            self._flood()
        else:
            now = asyncio.get_running_loop().time()
            # Streams that began together are spread over a period.
            spread = (id(self) >> 4) % 997 / 997
            self._next_at = now + self._period * spread
            self._streams.add(self)

    def advance(self, now: float) -> bool:
        """Writes the token that is due; returns whether the stream goes on."""
        if self._transport is None:
            return False
        if now >= self._next_at:
            self._transport.write(TOKEN)
            self._streams.tokens += 1
            self._next_at += self._period
            self._left -= 1
            if self._left == 0:
                self._end()
                return False
        return True

    def _flood(self) -> None:
        while self._left and not self._paused and self._transport is not None:
            count = min(self._left, 64)
            self._transport.write(TOKEN * count)
            self._streams.tokens += count
            self._left -= count
            if self._left == 0:
                self._end()

    def _end(self) -> None:
        assert self._transport is not None
        self._busy = False
        self._streams.open -= 1
        self._transport.write(last(self._total))


async def _main() -> None:
    streams = Streams()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Stream(streams), "127.0.0.1", 0, backlog=4096
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    # Ends with whoever started it.
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_main())
