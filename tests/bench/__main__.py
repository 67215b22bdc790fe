"""Compares what a delivered token costs: `python -m tests.bench`.

Every row relays the same streams of the same mock upstream, in a process of its own, in
turn, several times. Figures are medians; ratios are to `floor`, a websockets server
that only sends. `docs/how-to/benchmark.md` tells how to run it.
"""

import argparse
import datetime
import gc
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tests.bench import check, soak
from tests.bench.loop import run
from tests.bench.machine import machine
from tests.bench.report import (
    HEADLINE,
    READMES,
    Results,
    headline,
    overview,
    table,
    write,
)
from tests.bench.rows import ROWS, Row, missing
from tests.bench.runner import Runner, say
from tests.bench.scenario import Scenario
from tests.bench.scenarios import costs, interrupts, memory, noisy, resume, sharing

SCENARIOS = (
    *costs.SCENARIOS,
    *sharing.SCENARIOS,
    *noisy.SCENARIOS,
    *resume.SCENARIOS,
    *interrupts.SCENARIOS,
    *memory.SCENARIOS,
)

T = TypeVar("T", Row, Scenario)


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="What a delivered token costs."
    )
    parser.add_argument("--rows", help="names, with commas; all but some otherwise")
    parser.add_argument("--scenarios", help="names, with commas; all otherwise")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of steady streams")
    parser.add_argument("--write", action="store_true", help="the page in docs")
    parser.add_argument("--list", action="store_true", help="rows and scenarios")
    parser.add_argument("--check", action="store_true", help="ratios, in a minute")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="look for growth")
    options = parser.parse_args()
    _raise_open_files()
    gc.disable()
    if options.list:
        _list()
        return
    if options.check:
        run(check.check())
        return
    names = options.rows and options.rows.split(",")
    default = [row for row in ROWS if row.default]
    rows = _chosen(parser, ROWS, names, default)
    if options.soak:
        run(soak.soak([row for row in rows if row.ours], options.soak))
        return
    names = options.scenarios and options.scenarios.split(",")
    scenarios = _chosen(parser, SCENARIOS, names, SCENARIOS)
    run(_bench(rows, scenarios, options))


def _chosen(
    parser: argparse.ArgumentParser,
    known: Sequence[T],
    names: list[str] | None,
    default: Sequence[T],
) -> list[T]:
    """Returns what was named; a name stands for all that begin with it and a `-`."""
    if not names:
        return list(default)
    chosen: list[T] = []
    for name in names:
        exact = [each for each in known if each.name == name]
        found = exact or [each for each in known if each.name.startswith(f"{name}-")]
        if not found:
            parser.error(f"no {name!r}; there are {[each.name for each in known]}")
        chosen += found
    return chosen


async def _bench(
    rows: Sequence[Row], scenarios: Sequence[Scenario], options: argparse.Namespace
) -> None:
    begin = time.monotonic()
    there: list[Row] = []
    for row in rows:
        why = await missing(row)
        if why is None:
            there.append(row)
        else:
            say(f"left out: {row.name}: {why}")
    runner = Runner(there, scenarios, options.seconds)
    await runner.run(options.rounds)
    _tell(scenarios, runner.results, options)
    say(f"{(time.monotonic() - begin) / 60:.1f} minutes")


def _tell(
    scenarios: Sequence[Scenario],
    all_results: Mapping[str, Results],
    options: argparse.Namespace,
) -> None:
    """Prints all tables, and writes them where that is wanted."""
    day = datetime.datetime.now(datetime.UTC).date()
    footer = f"\n{day}, up to {options.rounds} rounds of {options.seconds:g} s.\n"
    written: dict[str, str] = {}
    for scenario in scenarios:
        results = all_results[scenario.name]
        if not results:
            say(f"left out: {scenario.name}: it is for none of these rows")
            continue
        text = f"\n{scenario.note}\n\n{table(scenario, results)}"
        say(f"\n### {scenario.title}\n{text}")
        written[scenario.name] = text + footer + "\n"
    if text := overview(scenarios, all_results):
        say(f"\n### µs per token (x floor)\n\n{text}")
        written["overview"] = f"\n{text}{footer}\n"
    say(f"\n{machine()}")
    written["machine"] = f"\n{machine()}\n"
    if options.write:
        for name, text in written.items():
            write(name, text)
        if text := headline(all_results.get(HEADLINE, {})):
            for page in READMES:
                write("headline", f"\n{text}\n", page)


def _list() -> None:
    for row in ROWS:
        say(f"{row.name:18} {row.what}")
    say()
    for scenario in SCENARIOS:
        say(f"{scenario.name:18} {scenario.title}")


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
