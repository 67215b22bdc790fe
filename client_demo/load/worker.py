"""One process of a run: brings its users, lets them go, says how it stands."""

import time
from collections.abc import Callable
from itertools import count
from random import Random

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from client_demo.load.stages import (
    arrivals,
    due_seconds,
    group_of,
    length_seconds,
    most_users,
)
from client_demo.load.tally import Tally
from client_demo.load.user import Run, be_user

_TICK_SECONDS = 1.0
_LAG_SECONDS = 0.05
# How long users may go on after Ctrl-C.
_HURRY_SECONDS = 10.0


class Assignment(Struct, frozen=True, kw_only=True):
    """What one process has to do.

    Attributes:
        run: What all users have in common.
        index: Which process this is, from 0.
        processes: How many there are; each takes the users whose number divided
            by this leaves its index.
    """

    run: Run
    index: int = 0
    processes: int = 1


class Tick(Struct, frozen=True, kw_only=True, tag=True):
    """How a process stands.

    Attributes:
        at_seconds: Since the start of the run.
        users: At it now.
        counters: As in `Tally`.
        ttft: The times to first token, encoded; None for none.
        cpu: How busy it was in the last second, in percent of a core.
    """

    at_seconds: float
    users: int
    counters: dict[str, int]
    ttft: str | None
    cpu: float


class Worker:
    """Does one assignment.

    Attributes:
        tally: What was counted so far.
    """

    def __init__(self, assignment: Assignment, tick: Callable[[Tick], None]) -> None:
        """Takes what is to be done.

        Args:
            assignment: What.
            tick: Told each second how it stands.
        """
        self._run = assignment.run
        self._scenario = assignment.run.plan.scenario
        # Stages that take no time bring everybody once.
        runs = self._scenario.runs
        self._runs = runs or (None if length_seconds(self._scenario.stages) else 1)
        self._index = assignment.index
        self._processes = assignment.processes
        self._tick = tick
        self._began = anyio.current_time()
        self._stopping = anyio.Event()
        self._time = anyio.CancelScope()
        self._sampled = (time.process_time(), 0.0)
        self.tally = Tally(self._now_seconds)

    def stop(self) -> None:
        """Nobody begins again; who is at it may finish, for a while."""
        self._stopping.set()
        drain_seconds = min(self._scenario.drain_seconds, _HURRY_SECONDS)
        self._time.deadline = min(
            self._time.deadline, anyio.current_time() + drain_seconds
        )

    async def work(self) -> None:
        """Runs all stages to their end."""
        self._began = anyio.current_time()
        self._sampled = (time.process_time(), 0.0)
        stages = self._scenario.stages
        if self._runs is None:
            long_seconds = length_seconds(stages) + self._scenario.drain_seconds
            self._time.deadline = self._began + long_seconds
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ticks)
            tasks.start_soon(self._lag)
            with self._time:
                async with anyio.create_task_group() as users:
                    for number in range(
                        self._index, most_users(stages), self._processes
                    ):
                        users.start_soon(self._stay, number)
                    if not most_users(stages):
                        await self._arrive(users)
            tasks.cancel_scope.cancel()
        if not self.tally.cpu:
            self._busy()

    async def _stay(self, number: int) -> None:
        """One user, again and again while it is wanted."""
        stages = self._scenario.stages
        group = group_of(self._scenario.groups, number)
        due = due_seconds(stages, number, 0.0)
        for turn in count() if self._runs is None else range(self._runs):
            if due is None or not await self._is_due(due):
                return
            wait_seconds = await be_user(
                self._run,
                group,
                self.tally,
                number=number,
                time=turn,
                late_seconds=max(0.0, self._now_seconds() - due),
            )
            due = self._now_seconds() + wait_seconds
            if self._runs is None:
                due = due_seconds(stages, number, due)

    async def _arrive(self, users: TaskGroup) -> None:
        """Everybody who comes, once."""
        random = Random(self._scenario.seed)  # noqa: S311
        for number, due in enumerate(arrivals(self._scenario.stages, random)):
            if number % self._processes != self._index:
                continue
            if not await self._is_due(due):
                return
            users.start_soon(self._visit, number, due)

    async def _visit(self, number: int, due: float) -> None:
        await be_user(
            self._run,
            group_of(self._scenario.groups, number),
            self.tally,
            number=number,
            time=0,
            late_seconds=max(0.0, self._now_seconds() - due),
        )

    async def _is_due(self, at_seconds: float) -> bool:
        """Waits until then; says whether it still is to be."""
        with anyio.move_on_after(at_seconds - self._now_seconds()):
            await self._stopping.wait()
        return not self._stopping.is_set()

    async def _lag(self) -> None:
        while True:
            due = anyio.current_time() + _LAG_SECONDS
            await anyio.sleep_until(due)
            self.tally.time("lag", anyio.current_time() - due)

    async def _ticks(self) -> None:
        while True:
            await anyio.sleep(_TICK_SECONDS)
            self.tally.user(0)
            cpu = self._busy()
            ttft = self.tally.histogram("ttft")
            self._tick(
                Tick(
                    at_seconds=self._now_seconds(),
                    users=self.tally.active,
                    counters=dict(self.tally.counters),
                    ttft=None if ttft is None else ttft.encode(),
                    cpu=cpu,
                )
            )

    def _busy(self) -> float:
        """Notes how busy this process was since the last time, in percent."""
        used_seconds, at_seconds = time.process_time(), self._now_seconds()
        before_used_seconds, before_seconds = self._sampled
        self._sampled = used_seconds, at_seconds
        cpu = (
            100
            * (used_seconds - before_used_seconds)
            / max(at_seconds - before_seconds, 1e-9)
        )
        self.tally.cpu.append(round(cpu, 1))
        return cpu

    def _now_seconds(self) -> float:
        return anyio.current_time() - self._began
