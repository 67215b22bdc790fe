"""The thread that runs a store's calls."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from wsserver.stores.sqlite import worker as module
from wsserver.stores.sqlite.worker import Worker

Call = Callable[..., Awaitable[Any]]


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test-worker")
    yield worker
    worker.stop()
    worker.join()


@pytest.fixture(params=["call", "call_shortly", "call_shortly, but too late"])
def call(
    request: pytest.FixtureRequest, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> Call:
    way, _, late = request.param.partition(",")
    if late:
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 0)
    return getattr(worker, way)


async def test_a_call_returns_what_the_function_returns(call: Call) -> None:
    assert await call(divmod, 7, 2) == (3, 1)
    name = await call(lambda: threading.current_thread().name)
    assert name == "test-worker"


async def test_a_call_raises_what_the_function_raises(call: Call) -> None:
    with pytest.raises(ZeroDivisionError):
        await call(divmod, 7, 0)

    assert await call(int) == 0, "and goes on"


async def test_each_of_many_calls_has_its_outcome_whenever_it_comes(
    call: Call,
) -> None:
    for number in range(2_000):
        assert await call(divmod, number, 7) == divmod(number, 7)


async def test_what_is_short_is_done_before_the_loop_goes_on(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 10)
    seen: list[str] = []

    async def other() -> None:
        seen.append("loop")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await worker.call_shortly(seen.append, "worker")
    assert seen == ["worker", "loop"]


async def test_the_loop_stands_still_for_a_moment_only(worker: Worker) -> None:
    gate = threading.Event()

    async def open_gate() -> None:
        gate.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_gate)
        began = time.monotonic()
        assert await worker.call_shortly(gate.wait, 10)
    assert time.monotonic() - began < 5


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
    worker: Worker, call: Call
) -> None:
    gate, seen = threading.Event(), list[int]()
    worker.post(lambda: gate.wait(5) and None)

    with anyio.CancelScope() as scope:
        scope.cancel()
        await call(seen.append, 1)
    with anyio.CancelScope():
        gate.set()
        await call(seen.append, 2)

    assert scope.cancelled_caught
    assert seen == [1, 2]


async def test_a_call_that_nobody_waits_for_any_more_may_fail(
    worker: Worker, call: Call
) -> None:
    gate = threading.Event()
    worker.post(lambda: gate.wait(5) and None)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await call(divmod, 1, 0)

    gate.set()
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
