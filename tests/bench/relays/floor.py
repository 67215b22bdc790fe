"""The floor: a websockets server that only sends, with no upstream at all.

Run as `python -m tests.bench.relays.floor 0`; prints its port. The client sends
`{"model": "bench:tokens=200,rate=30"}` and gets as many frames of a delta's size.
All streams share one timer and one task. With `sleep` as a further argument each has
a task that sleeps between tokens, as one would write it.
"""

import asyncio
import itertools
import sys
import time

import orjson
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.bench.loop import run
from tests.bench.mock_upstream import Options, options
from tests.bench.wheel import TICK_SECONDS, Wheel

FRAME = (
    '{"type":"delta","conversation":"conversation-1","seq":1000,"turn":2,"text":"%s"}'
)
# Streams that began together are spread over a period, as the upstream spreads them.
_spreads = (number * 0.618034 % 1 for number in itertools.count())
DONE = '{"done":true}'


def frame(asked: Options) -> str:
    """Returns a frame with a token, or with the moment as the upstream stamps it."""
    if asked.stamp:
        return FRAME % f"@{time.monotonic_ns() // 1000:016d}"
    return FRAME % " token"


class Paced:
    """A stream that the shared timer drives."""

    def __init__(self, socket: ServerConnection, asked: Options, at: float) -> None:
        self.socket = socket
        self.asked = asked
        self.left = asked.tokens
        self.next_at = at
        self.done = asyncio.Event()


class Pace:
    """All paced streams, and the task that sends what is due."""

    def __init__(self) -> None:
        self._wheel: Wheel[Paced] = Wheel()
        self._some = asyncio.Event()

    async def stream(self, socket: ServerConnection, asked: Options) -> None:
        """Returns when all of the stream is sent."""
        spread = next(_spreads) / asked.rate
        stream = Paced(socket, asked, asyncio.get_running_loop().time() + spread)
        self._wheel.add(stream, stream.next_at)
        self._some.set()
        await stream.done.wait()

    async def run(self) -> None:
        """Sends what is due, at each tick."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._wheel:
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(TICK_SECONDS)
            due = self._wheel.due(loop.time())
            # One frame for all: nothing but sending is left.
            text = frame(due[0].asked) if due else ""
            for stream in due:
                await self._send(stream, text)

    async def _send(self, stream: Paced, text: str) -> None:
        try:
            await stream.socket.send(text)
        except ConnectionClosed:
            stream.left = 1
        stream.left -= 1
        stream.next_at += 1 / stream.asked.rate
        if stream.left:
            self._wheel.add(stream, stream.next_at)
        else:
            stream.done.set()


async def _sleep_between(
    socket: ServerConnection, asked: Options, spread: float
) -> None:
    loop = asyncio.get_running_loop()
    next_at = loop.time() + spread
    for _ in range(asked.tokens):
        if asked.rate:
            await asyncio.sleep(next_at - loop.time())
            next_at += 1 / asked.rate
        await socket.send(frame(asked))


async def _main(*, sleeping: bool) -> None:
    pace = Pace()

    async def handler(socket: ServerConnection) -> None:
        async for data in socket:
            asked = options(orjson.loads(data)["model"])
            if asked.rate and not sleeping:
                await pace.stream(socket, asked)
            else:
                await _sleep_between(socket, asked, next(_spreads) / (asked.rate or 1))
            await socket.send(DONE)

    async with (
        serve(handler, "127.0.0.1", 0, backlog=4096, compression=None) as server,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(pace.run())
        port = next(iter(server.sockets)).getsockname()[1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    run(_main(sleeping="sleep" in sys.argv[2:]))
