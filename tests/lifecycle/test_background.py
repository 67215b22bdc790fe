"""A background task that a defect ends runs again; the server serves meanwhile."""

import asyncio
from typing import Any, NoReturn

import anyio
import pytest
from structlog.testing import capture_logs

from tests.fakes.clocks import jumping_loop
from wsserver.lifecycle.background import kept
from wsserver.server import serving
from wsserver.settings import Settings
from wsserver.turns.sweep import Sweep

jumps = pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {"loop_factory": jumping_loop})], ids=["jumping"]
)


class PanicError(BaseException):
    """As of a library in Rust: no `Exception`."""


class Task:
    """Fails each time after some seconds, and notes when it was begun."""

    def __init__(self, *failures: tuple[float, BaseException]) -> None:
        self.began: list[float] = []
        self._failures = list(failures)

    async def run(self) -> None:
        self.began.append(anyio.current_time())
        if self._failures:
            seconds, failure = self._failures.pop(0)
            await anyio.sleep(seconds)
            raise failure


async def begun(*failures: tuple[float, BaseException]) -> list[float]:
    """Returns how long after each failure it began again."""
    task = Task(*failures)
    with capture_logs() as lines:
        await kept("t", task.run)
    assert [line["event"] for line in lines] == ["task_defective"] * len(failures)
    ran = [seconds for seconds, _ in failures]
    pairs = zip(task.began, task.began[1:], ran, strict=False)
    return [after - before - seconds for before, after, seconds in pairs]


@jumps
async def test_it_runs_again_after_ever_longer_until_it_was_steady(
    anyio_backend: Any,
) -> None:
    del anyio_backend
    failure = (0.0, RuntimeError("a defect"))
    others = [(60.0, PanicError()), (0.0, asyncio.CancelledError())]
    waits = await begun(*[failure] * 9, *others)
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 0.1, 0.2]
    assert waits == pytest.approx(expected, abs=0.01)


@jumps
@pytest.mark.parametrize("ends", [KeyboardInterrupt(), None])
async def test_what_ends_the_process_or_the_task_passes(
    ends: BaseException | None, anyio_backend: Any
) -> None:
    del anyio_backend
    with anyio.move_on_after(5) as scope:
        if ends is None:
            await kept("t", anyio.sleep_forever)
        else:
            with pytest.raises(type(ends)):
                await kept("t", Task((0.0, ends)).run)
    assert scope.cancelled_caught == (ends is None)


def test_a_server_serves_on_and_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = anyio.Event()

    async def once(*_: object) -> NoReturn:
        failed.set()
        raise RuntimeError("a defect")

    async def served() -> None:
        with anyio.fail_after(10):
            async with serving(Settings(port=0, store="memory")) as server:
                await failed.wait()
                assert b" 200 " in await asked(server.port)

    monkeypatch.setattr(Sweep, "once", once)
    with capture_logs() as lines:
        anyio.run(served)
    told = [(line["event"], line.get("task")) for line in lines]
    assert ("task_defective", "sweep") in told
    assert told[-1] == ("drained", None)


async def asked(port: int) -> bytes:
    """Returns how an answer of the server begins."""
    async with await anyio.connect_tcp("127.0.0.1", port) as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return await client.receive()
