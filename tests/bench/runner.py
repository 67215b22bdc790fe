"""Runs scenarios over rows: interleaved, each row in a process of its own."""

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.bench.process import Process, StartError
from tests.bench.report import Result
from tests.bench.rows import Row, mock_upstream, started
from tests.bench.scenario import KEEPS_UP, FellBehind, Figures, Rig, Scenario
from tests.bench.streams import warm_up

SCENARIO_SECONDS = 60.0
ENOUGH_SECONDS = 17 * 60.0
QUIET_SECONDS = 3.0
_QUIET_SHARE = 0.03
# A row that is late and has not used its core that much waited for the machine.
_BUSY_PERCENT = 70.0


def say(line: str = "") -> None:
    """Prints a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Runner:
    """One run of the benchmark.

    Attributes:
        results: By the names of the scenario and the row.
    """

    def __init__(
        self, rows: Sequence[Row], scenarios: Sequence[Scenario], seconds: float
    ) -> None:
        self.results: dict[str, dict[str, Result]] = {
            scenario.name: {row.name: Result() for row in rows if scenario.applies(row)}
            for scenario in scenarios
        }
        self._rows = rows
        self._scenarios = scenarios
        self._seconds = seconds
        # From which scenario of a group on a row is spared.
        self._behind: dict[tuple[str, str], int] = {}

    async def run(self, rounds: int) -> None:
        """Goes through all rows, so many times, or until the time is up."""
        until = time.monotonic() + ENOUGH_SECONDS
        for number in range(rounds):
            for row in self._rows:
                if number and time.monotonic() > until:
                    say(f"{ENOUGH_SECONDS / 60:g} minutes: no more in round {number}")
                    return
                todo = [
                    scenario
                    for scenario in self._scenarios
                    if scenario.applies(row)
                    and number < min(scenario.rounds, row.rounds)
                ]
                await self._row(row, todo, number)

    async def _row(self, row: Row, todo: list[Scenario], number: int) -> None:
        shared = [scenario for scenario in todo if not scenario.fresh]
        while shared:
            shared = await self._in_one_process(row, shared, number)
        for scenario in todo:
            if scenario.fresh:
                await self._in_one_process(row, [scenario], number)

    async def _in_one_process(
        self, row: Row, todo: list[Scenario], number: int
    ) -> list[Scenario]:
        """Runs scenarios until one breaks the process; returns what is left."""
        async with AsyncExitStack() as stack:
            upstream = await stack.enter_async_context(mock_upstream())
            try:
                relay = await stack.enter_async_context(started(row, upstream))
            except (StartError, TimeoutError) as error:
                for scenario in todo:
                    self._result(scenario, row).failure = f"does not start: {error}"
                return []
            rig = self._rig(row, relay, upstream, f"{number}-warm")
            await warm_up(rig)
            for done, scenario in enumerate(todo, 1):
                if self._is_spared(scenario, row):
                    self._result(scenario, row).failure = "falls behind"
                    continue
                await quiet(relay)
                gc.collect()
                rig = self._rig(row, relay, upstream, f"{number}-{scenario.name}")
                if not await self._scenario(scenario, rig):
                    return todo[done:]
        return []

    async def _scenario(self, scenario: Scenario, rig: Rig) -> bool:
        """Runs one; returns whether the process is fit for more."""
        result = self._result(scenario, rig.row)
        try:
            figures = await asyncio.wait_for(scenario.run(rig), SCENARIO_SECONDS)
        except (FellBehind, TimeoutError) as error:
            result.failure = str(error) or f"not done in {SCENARIO_SECONDS:g} s"
            self._fell_behind(scenario, rig.row)
            say(f"  {scenario.name:14} {rig.row.name:18} {result.failure}")
            return False
        result.figures.append(figures)
        say(f"  {scenario.name:14} {rig.row.name:18} {_line(scenario, figures)}")
        if figures.get("delivered", 100) < 100 * KEEPS_UP:
            if figures["relay_share"] > _BUSY_PERCENT:
                self._fell_behind(scenario, rig.row)
            return False
        return True

    def _fell_behind(self, scenario: Scenario, row: Row) -> None:
        if scenario.group:
            self._behind[scenario.group, row.name] = self._scenarios.index(scenario)

    def _is_spared(self, scenario: Scenario, row: Row) -> bool:
        behind = self._behind.get((scenario.group, row.name))
        return behind is not None and self._scenarios.index(scenario) >= behind

    def _result(self, scenario: Scenario, row: Row) -> Result:
        return self.results[scenario.name][row.name]

    def _rig(self, row: Row, relay: Process, upstream: Process, run: str) -> Rig:
        return Rig(
            row=row, relay=relay, upstream=upstream, run=run, seconds=self._seconds
        )


def _line(scenario: Scenario, figures: Figures) -> str:
    return "  ".join(
        f"{column.heading} {figures[column.key]:,.{column.digits}f}"
        for column in scenario.columns
        if column.key in figures
    )


async def quiet(relay: Process) -> None:
    """Waits until the process has done with what went before."""
    for _ in range(int(QUIET_SECONDS / 0.1)):
        before = relay.cpu_seconds()
        await asyncio.sleep(0.1)
        if relay.cpu_seconds() - before < 0.1 * _QUIET_SHARE:
            return
