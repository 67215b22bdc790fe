"""The thread that runs a store's calls."""

import threading
from collections.abc import Iterator

import anyio
import pytest

from wsserver.stores.sqlite.worker import Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test-worker")
    yield worker
    worker.stop()
    worker.join()


async def test_a_call_returns_what_the_function_returns(worker: Worker) -> None:
    assert await worker.call(divmod, 7, 2) == (3, 1)
    name = await worker.call(lambda: threading.current_thread().name)
    assert name == "test-worker"


async def test_a_call_raises_what_the_function_raises(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        await worker.call(divmod, 7, 0)

    assert await worker.call(int) == 0, "and goes on"


async def test_calls_run_in_order_and_do_not_block_the_loop(worker: Worker) -> None:
    gate, seen = threading.Event(), list[int]()

    async def ask(number: int) -> None:
        await worker.call(seen.append, number)

    async with anyio.create_task_group() as tasks:
        worker.post(lambda: gate.wait(5) and None)
        for number in range(5):
            tasks.start_soon(ask, number)
        await anyio.lowlevel.checkpoint()
        assert seen == []
        gate.set()

    assert seen == [0, 1, 2, 3, 4]


async def test_a_cancelled_call_still_runs_and_its_outcome_is_dropped(
    worker: Worker,
) -> None:
    gate, seen = threading.Event(), list[int]()
    worker.post(lambda: gate.wait(5) and None)

    with anyio.CancelScope() as scope:
        scope.cancel()
        await worker.call(seen.append, 1)
    with anyio.CancelScope():
        gate.set()
        await worker.call(seen.append, 2)

    assert scope.cancelled_caught
    assert seen == [1, 2]


async def test_a_call_that_nobody_waits_for_any_more_may_fail(worker: Worker) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await worker.call(divmod, 1, 0)

    assert await worker.call(int) == 0


def test_the_loop_may_be_gone_when_a_call_ends(worker: Worker) -> None:
    gate = threading.Event()

    async def leave() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await worker.call(gate.wait, 5)

    anyio.run(leave)
    gate.set()

    async def ask() -> int:
        return await worker.call(int)

    assert anyio.run(ask) == 0
