"""The benchmark's mock upstream streams what a model would, and the rig sees all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import orjson
import pytest
from openai.types.chat import ChatCompletionChunk

from tests.bench.clients.sse import connect_sse
from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.upstream import finish
from tests.bench.mock_upstream import Stream, Streams


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[int, Streams]]:
    streams = Streams()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stream(streams), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], streams


@pytest.mark.parametrize("rate", [0, 50, 2000])
async def test_all_tokens_of_a_stream_arrive(rate: int) -> None:
    tally = Tally(1, stamped=rate > 0)
    model = f"bench:tokens=20,rate={rate},stamp={int(rate > 0)}"
    async with serving() as (port, streams):
        chat = await connect_sse(port, model, Answer(tally))
        chat.ask()
        with anyio.fail_after(10):
            await tally.all_ended.wait()
        chat.close()
    assert tally.tokens == 20
    assert all(0 <= delay < 10_000_000 for delay in tally.delays_us)
    assert len(tally.delays_us) == (20 if rate else 0)
    assert not streams.closed_us


async def test_an_early_close_is_noted_under_the_streams_id() -> None:
    tally = Tally(1)
    async with serving() as (port, streams):
        chat = await connect_sse(port, "bench:tokens=1000,id=mine", Answer(tally))
        chat.ask()
        with anyio.fail_after(10):
            await tally.all_started.wait()
            chat.close()
            while not streams.closed_us:
                await anyio.lowlevel.checkpoint()
    assert list(streams.closed_us) == ["mine"]


async def test_streams_end_when_they_are_told_to() -> None:
    tally = Tally(1)
    async with serving() as (port, _):
        chat = await connect_sse(port, "bench:tokens=1000000", Answer(tally))
        chat.ask()
        with anyio.fail_after(10):
            await tally.all_started.wait()
            sent = await finish(port)
            await tally.all_ended.wait()
            assert await finish(port) == 0
        chat.close()
    assert 1 <= sent == tally.tokens


async def test_its_chunks_are_what_the_sdk_expects() -> None:
    model = {"model": "bench:tokens=2,rate=0,text=40"}
    body = orjson.dumps(model)
    async with serving() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        with anyio.fail_after(10):
            answer = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
    lines = [line[6:] for line in answer.split(b"\n") if line.startswith(b"data: {")]
    chunks = [
        ChatCompletionChunk.model_validate(orjson.loads(each)) for each in lines[:-1]
    ]
    assert [chunk.choices[0].delta.content for chunk in chunks] == [
        "",
        *[" token".ljust(40, "x")] * 2,
        None,
    ]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert orjson.loads(lines[-1])["usage"]["completion_tokens"] == 2
    assert 200 < len(lines[1]) < 330
