"""A demo stream keeps its pace: absolute due times, one batch a wake-up."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.engine.model import Finished, ModelEvent, ModelRequest
from wsserver.providers.demo import DemoProvider
from wsserver.providers.demo.playback import FLAT_OUT_BATCH

provider = DemoProvider()


@asynccontextmanager
async def stream(
    model: str = "demo/long", **params: Any
) -> AsyncIterator[AsyncIterator[Sequence[ModelEvent]]]:
    request = ModelRequest(
        model=model,
        messages=[{"role": "user", "content": "Go on."}],
        params={f"demo_{key}": value for key, value in params.items()},
        request_id="r",
    )
    async with provider.stream(request) as batches:
        yield batches


@pytest.mark.parametrize("rate", [3, 7, 30, 49, 1000 / 3])
async def test_each_token_comes_when_it_is_due(rate: float):
    start = anyio.current_time()
    arrivals: list[float] = []
    async with stream(tokens=500, tokens_per_second=rate, first_token_ms=250) as given:
        async for batch in given:
            tokens = [event for event in batch if not isinstance(event, Finished)]
            assert len(tokens) == 1
            arrivals.append(anyio.current_time() - start)
    due = [0.25 + number / rate for number in range(500)]
    assert arrivals == pytest.approx(due, abs=1e-6)


async def test_a_late_reader_gets_what_is_due_in_one_batch_and_no_drift():
    start = anyio.current_time()
    async with stream(tokens=300, tokens_per_second=10, first_token_ms=0) as given:
        assert len(await anext(given)) == 1
        await anyio.sleep(5.05)
        assert len(await anext(given)) == 50
        assert len(await anext(given)) == 1
        async for _ in given:
            pass
    assert anyio.current_time() - start == pytest.approx(29.9)


async def test_the_end_comes_with_the_last_token():
    async with stream(tokens=3, tokens_per_second=1, first_token_ms=0) as given:
        sizes = [len(batch) async for batch in given]
    assert sizes == [1, 1, 2]


async def test_headers_come_at_once_and_the_first_token_later():
    start = anyio.current_time()
    async with stream(first_token_ms=5000) as given:
        assert anyio.current_time() == start
        await anext(given)
        assert anyio.current_time() == pytest.approx(start + 5)


async def test_flat_out_takes_no_time_and_lets_others_run():
    start = anyio.current_time()
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count_turns)
        async with stream("demo/fast", tokens=FLAT_OUT_BATCH * 10) as given:
            sizes = [len(batch) async for batch in given]
        group.cancel_scope.cancel()
    assert sizes == [FLAT_OUT_BATCH] * 9 + [FLAT_OUT_BATCH + 1]
    assert anyio.current_time() == start
    assert turns >= 9


async def test_it_stops_at_a_cancellation_between_two_tokens():
    given_tokens = 0
    with anyio.move_on_after(10.05):
        async with stream("demo/slow", first_token_ms=0) as given:
            async for batch in given:
                given_tokens += len(batch)
    assert given_tokens == 41


async def test_a_thousand_streams_share_their_texts():
    async with stream("demo/long") as one, stream("demo/long") as other:
        assert (await anext(one))[0] is (await anext(other))[0]
