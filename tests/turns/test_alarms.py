"""Alarms ring at their time, however often it was moved."""

import gc
import math
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from tests.fakes.timers import TaskTimers
from wsserver.turns.alarms import TICKS_PER_SECOND, Alarm, Alarms


@asynccontextmanager
async def alarms() -> AsyncGenerator[Alarms]:
    async with anyio.create_task_group() as tasks:
        yield Alarms(TaskTimers(tasks))
        tasks.cancel_scope.cancel()


class Bell:
    """Notes when its alarm rang, in seconds since it was made."""

    def __init__(self, of: Alarms) -> None:
        self.began = anyio.current_time()
        self.rung: list[float] = []
        self.alarm = Alarm(of, self._ring)

    def set(self, seconds: float) -> None:
        self.alarm.set(self.began + seconds)

    def _ring(self) -> None:
        self.rung.append(anyio.current_time() - self.began)


async def test_it_rings_once_at_its_time() -> None:
    async with alarms() as of:
        bell = Bell(of)
        bell.set(30)
        await anyio.sleep(29)
        assert bell.rung == []
        await anyio.sleep(1000)
        assert bell.rung == [30]


async def test_one_that_fails_is_named_and_the_others_ring() -> None:
    def fails() -> None:
        raise RuntimeError("a defect")

    async with alarms() as of:
        bells = [Bell(of), Bell(of)]
        bells[0].set(10)
        Alarm(of, fails).set(anyio.current_time() + 10)
        bells[1].set(10)
        with capture_logs() as lines:
            await anyio.sleep(20)
        assert [bell.rung for bell in bells] == [[10], [10]]
        assert [line["event"] for line in lines] == ["alarm_defective"]


async def test_put_off_it_rings_later_and_put_forward_sooner() -> None:
    async with alarms() as of:
        bell = Bell(of)
        bell.set(10)
        bell.set(50)
        await anyio.sleep(20)
        assert bell.rung == []
        bell.set(30)
        await anyio.sleep(1000)
        assert bell.rung == [30]


async def test_a_time_that_is_over_rings_at_once() -> None:
    async with alarms() as of:
        bell = Bell(of)
        await anyio.sleep(5)
        bell.set(1)
        await anyio.sleep(5)
        assert bell.rung == [5]


async def test_it_may_be_set_while_it_rings() -> None:
    async with alarms() as of:
        times: list[float] = []

        def ring() -> None:
            times.append(anyio.current_time())
            again.set(anyio.current_time() + 7)

        again = Alarm(of, ring)
        began = anyio.current_time()
        again.set(began)
        await anyio.sleep(15)
        assert times == [began, began + 7, began + 14]


async def test_cancelled_it_never_rings_and_holds_nothing() -> None:
    async with alarms() as of:
        bell = Bell(of)
        bell.set(10)
        bell.alarm.cancel()
        held = weakref.ref(bell)
        rung = bell.rung
        del bell
        gc.collect()
        assert held() is None
        await anyio.sleep(20)
        assert rung == []


async def test_cancelled_it_is_gone_within_a_minute() -> None:
    async with alarms() as of:
        early, late = Bell(of), Bell(of)
        early.set(86_400)
        late.set(86_400)
        early.alarm.cancel()
        await anyio.sleep(61)
        assert len(of) == 1
        await anyio.sleep(86_400)
        assert (early.rung, late.rung, len(of)) == ([], [86_400], 0)


async def test_one_that_is_always_due_holds_up_nobody() -> None:
    async with alarms() as of:
        rung: list[float] = []

        def again() -> None:
            rung.append(of.now())
            if len(rung) < 5:
                always.set(of.now())

        always = Alarm(of, again)
        always.set(of.now())
        others: list[int] = []
        for _ in range(40):
            await anyio.lowlevel.checkpoint()
            others.append(len(rung))
        assert len(rung) == 5
        assert set(others) > {1, 2, 3, 4}, "others run in between"


class CoarseTimers:
    """Calls back at the nearest whole millisecond, as uvloop does."""

    def __init__(self) -> None:
        self.ms = 0
        self.due: list[tuple[int, Callable[[], None]]] = []
        self.asked = 0

    def time(self) -> float:
        return self.ms / 1000

    def call_at(self, when: float, callback: Callable[[], None], /) -> "CoarseTimers":
        self.asked += 1
        self.due = [(round(when * 1000), callback)]
        return self

    def cancel(self) -> None:
        self.due.clear()

    def pass_to(self, ms: int) -> None:
        while self.due and self.due[0][0] <= ms:
            at, callback = self.due.pop()
            self.ms = max(self.ms, at)
            callback()
        self.ms = ms


@given(st.lists(st.floats(0.0001, 30.0), min_size=1, max_size=10))
def test_with_a_clock_of_milliseconds_each_is_asked_for_once(at: list[float]) -> None:
    timers = CoarseTimers()
    of = Alarms(timers)
    rung: list[float] = []
    for one in sorted(at):
        Alarm(of, lambda: rung.append(timers.time())).set(one)
    timers.pass_to(40_000)
    assert rung == [pytest.approx(one, rel=0, abs=0.00101) for one in sorted(at)]
    assert all(late >= due for late, due in zip(rung, sorted(at), strict=True))
    assert timers.asked <= len(at)


@given(st.integers(1, 10**9), st.sampled_from([-1, 0, 1]))
def test_none_rings_before_its_time_by_what_a_float_is_off(ms: int, off: int) -> None:
    at = ms / 1000
    if off:
        at = math.nextafter(at, off * math.inf)
    timers = CoarseTimers()
    of = Alarms(timers)
    rung: list[float] = []
    timers.ms = ms - 50
    Alarm(of, lambda: rung.append(timers.time())).set(at)
    timers.pass_to(ms + 10)
    assert len(rung) == 1
    assert at <= rung[0] <= at + 0.0011


async def test_stopped_none_rings() -> None:
    async with alarms() as of:
        bell = Bell(of)
        bell.set(10)
        of.stop()
        bell.set(5)
        await anyio.sleep(100)
        assert bell.rung == []


async def test_they_ring_in_the_context_of_who_made_them_all() -> None:
    name = ContextVar("name", default="nobody")
    async with alarms() as of:
        names: list[str] = []
        name.set("who set it")
        Alarm(of, lambda: names.append(name.get())).set(of.now() + 1)
        await anyio.sleep(2)
        assert names == ["nobody"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 5),
            st.one_of(st.integers(0, 200), st.just(float("inf"))),
        ),
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_each_rings_when_the_last_time_it_was_set_to_has_come(
    moves: list[tuple[int, int, float]],
) -> None:
    async def story() -> None:  # 0.1234: no two things happen at one time
        async with alarms() as of:
            bells = [Bell(of) for _ in range(4)]
            due: list[float] = [float("inf")] * 4
            expected: list[list[float]] = [[] for _ in bells]
            now = 0.0
            for number, seconds, at in moves:
                await anyio.sleep(seconds + 0.1234)
                now += seconds + 0.1234
                for n, time in enumerate(due):
                    if time <= now:
                        expected[n].append(time)
                        due[n] = float("inf")
                bells[number].set(now + at)
                due[number] = now + at
            await anyio.sleep(400)
            for n, time in enumerate(due):
                expected[n] += [time] if time < float("inf") else []
            tick = 1 / TICKS_PER_SECOND
            assert [bell.rung for bell in bells] == [
                pytest.approx(e, rel=0, abs=1.01 * tick) for e in expected
            ]

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(story, backend="trio", backend_options={"clock": clock})
