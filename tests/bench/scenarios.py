"""What is measured: streams through a relay, and what each delivered token costs."""

import asyncio
from collections.abc import Callable

import orjson
from msgspec import Struct

from tests.bench.client import WebSocketCounter, connect
from tests.bench.relay import OURS, Process

CONNECT_AT_ONCE = 50


class Load(Struct, frozen=True, kw_only=True):
    """So many streams at once.

    Attributes:
        streams: Each on a connection of its own.
        tokens: Of each stream.
        rate: Tokens per second of each; 0 is as fast as it goes.
    """

    streams: int
    tokens: int
    rate: float

    @property
    def model(self) -> str:
        """The model name that makes the mock upstream stream so."""
        return f"bench:tokens={self.tokens},rate={self.rate:g}"


class Cost(Struct, frozen=True, kw_only=True):
    """What a run took.

    Attributes:
        us_per_token: Processor microseconds of the relay per delivered token.
        seconds: From the first request to the last token.
        frames: Data frames that the clients got.
        rss_bytes: The relay's memory while the streams ran.
    """

    us_per_token: float
    seconds: float
    frames: int
    rss_bytes: int


async def measure(name: str, process: Process, load: Load) -> Cost:
    """Runs one load through a relay.

    Raises:
        TimeoutError: Not all streams came to their end in time.
        AssertionError: An answer was not whole.
    """
    await _warm_up(name, process)
    clients = await _connect(name, process.port, load.streams)
    if name in OURS:
        await _open_all(clients, load)
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in clients]
    for client, future in zip(clients, done, strict=True):
        client.frames = 0
        client.on_frame = _watch(name, load, future)
    began, before = loop.time(), process.cpu_seconds()
    for number, client in enumerate(clients):
        if name in OURS:
            client.send(type="send", id="s", conversation=f"c{number}", content="go")
        else:
            client.send(model=load.model)
    limit = 60 + 3 * load.tokens / (load.rate or 1000)
    await asyncio.wait_for(asyncio.gather(*done), limit)
    rss = process.rss_bytes()
    spent, seconds = process.cpu_seconds() - before, loop.time() - began
    for client in clients:
        client.close()
    return Cost(
        us_per_token=spent / (load.streams * load.tokens) * 1e6,
        seconds=seconds,
        frames=sum(client.frames for client in clients),
        rss_bytes=rss,
    )


async def _connect(name: str, port: int, count: int) -> list[WebSocketCounter]:
    clients: list[WebSocketCounter] = []
    path = "/v1/chat" if name in OURS else "/"
    while len(clients) < count:
        wave = min(CONNECT_AT_ONCE, count - len(clients))
        clients += await asyncio.gather(*(connect(port, path) for _ in range(wave)))
    return clients


async def _warm_up(name: str, process: Process) -> None:
    """Makes a relay import what it imports late."""
    (client,) = await _connect(name, process.port, 1)
    small = Load(streams=1, tokens=5, rate=0)
    if name in OURS:
        await _open_all([client], small, "warm")
    future = asyncio.get_running_loop().create_future()
    client.on_frame = _watch(name, small, future)
    if name in OURS:
        client.send(type="send", id="s", conversation="warm0", content="go")
    else:
        client.send(model=small.model)
    await asyncio.wait_for(future, 30)
    client.close()


async def _open_all(
    clients: list[WebSocketCounter], load: Load, prefix: str = "c"
) -> None:
    """Opens a conversation of its own for each client of wsserver."""
    waits: list[asyncio.Future[None]] = []
    for number, client in enumerate(clients):
        future = asyncio.get_running_loop().create_future()
        waits.append(future)
        client.on_frame = _until(b'"caught_up"', future)
        client.send(type="hello", protocol=1)
        client.send(
            type="open",
            id="o",
            conversation=f"{prefix}{number}",
            config={"model": load.model},
        )
    await asyncio.wait_for(asyncio.gather(*waits), 60)


def _until(mark: bytes, future: "asyncio.Future[None]") -> Callable[[bytes], None]:
    def on_frame(payload: bytes) -> None:
        if mark in payload and not future.done():
            future.set_result(None)

    return on_frame


def _watch(
    name: str, load: Load, future: "asyncio.Future[None]"
) -> Callable[[bytes], None]:
    """Resolves at the end of an answer, after checking that it is whole."""
    mark = b'{"type":"done"' if name in OURS else b'{"done"'
    whole = load.tokens * len(" token")

    def on_frame(payload: bytes) -> None:
        if payload.startswith(mark) and not future.done():
            frame = orjson.loads(payload)
            if name in OURS and frame["text"]["bytes"] != whole:
                future.set_exception(AssertionError(f"not whole: {frame}"))
            else:
                future.set_result(None)

    return on_frame
