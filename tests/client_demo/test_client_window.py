"""`window_bytes`: the server waits for what the application says it has dealt with."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from client_demo import Client, connect
from tests.client_demo.double import Double
from tests.fakes.server import server as server_process

FAST = "demo/markdown:tokens_per_second=1000"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def url(tmp_path: Path) -> AsyncGenerator[str]:
    async with server_process("--store", "memory", folder=tmp_path) as made:
        yield made.url


async def acks(server: Double, count: int) -> list[int]:
    return [(await server.peer.command("ack"))["seq"] for _ in range(count)]


async def history(server: Double) -> None:
    server.logs["c"] = []
    for _ in range(2):
        await server.event("c", "config", config={"model": "m"})


async def test_what_is_replayed_opens_the_window_by_itself(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        await history(server)
        chat = await client.open("c", window_bytes=2048)
        assert server.peer.opens[0]["window_bytes"] == 2048
        assert await acks(server, 2) == [1, 2]
        tasks.start_soon(server.answer, "c", "a", "b")
        assert await chat.ask("hi") == "ab"
        assert server.peer.waiting() == 0, "an answer waits for `ack`"
        chat.ack(4)
        chat.ack()
        assert await acks(server, 2) == [4, 7]


async def test_what_was_missed_opens_it_too(server: Double) -> None:
    async with connect(server.url, backoff_seconds=(0.01, 0.02)) as client:
        chat = await client.open("c", window_bytes=2048)
        client.drop()
        await history(server)
        await server.connection(2)
        assert await acks(server, 2) == [1, 2]
        assert chat.view.last == 2


async def test_without_a_window_nothing_is_acknowledged(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        await history(server)
        chat = await client.open("c")
        tasks.start_soon(server.answer, "c", "a")
        await chat.ask("hi")
        assert server.peer.waiting() == 0


async def test_an_answer_and_a_history_are_longer_than_the_window(url: str) -> None:
    async def opened(client: Client) -> str:
        chat = await client.open("c", model=FAST, window_bytes=1024)
        turn = chat.send("hi") if not chat.view.turns else None
        async for _ in turn or _nothing():
            chat.ack()
        (answered,) = chat.view.turns.values()
        assert answered.proven
        return answered.text

    with anyio.fail_after(30):
        async with connect(url) as first, connect(url) as second:
            text = await opened(first)
            assert len(text) > 1024
            assert await opened(second) == text


async def _nothing() -> AsyncGenerator[None]:
    for none in ():
        yield none
