"""The short form: `python -m tests.bench --check`, for continuous integration.

It fails on a ratio of processor times that were measured one after the other, never on
a time. A slow or busy machine slows all rows alike, but not at the same moment; so the
best of the rounds counts, which a change for the worse spoils as it does the others.
"""

import sys
from contextlib import AsyncExitStack

import msgspec

from tests.bench.process import Process
from tests.bench.rows import BY_NAME, mock_upstream, started
from tests.bench.runner import quiet, say
from tests.bench.scenario import FellBehind, Rig
from tests.bench.streams import Load, through_own_connections, warm_up

ROUNDS = 4
SECONDS = 1.5
LOAD = Load(streams=50, rate=30)
LIMITS = (
    ("wsserver-memory", "floor", 3.0),
    ("wsserver-memory", "plain-sdk", 0.35),
    ("wsserver-sqlite", "wsserver-memory", 1.5),
)
"""A row of ours costs at most so many times another's processor time per token. All are
generous; what is usual stands on the page."""

Costs = dict[str, float | None]
"""Microseconds per token by row; None where not all streams began in time."""


async def check() -> None:
    """Prints the ratios; exits with 1 where one is above its limit."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(mock_upstream())
        rigs: list[Rig] = []
        for name in dict.fromkeys(name for *names, _ in LIMITS for name in names):
            relay = await stack.enter_async_context(started(BY_NAME[name], upstream))
            rigs.append(_rig(name, relay, upstream))
            await warm_up(rigs[-1])
        rounds = [await _round(rigs, number) for number in range(ROUNDS)]
    faults = [fault for limit in LIMITS if (fault := judge(rounds, *limit))]
    for fault in faults:
        say(fault)
    if faults:
        sys.exit(1)


def _rig(name: str, relay: Process, upstream: Process) -> Rig:
    row = BY_NAME[name]
    return Rig(row=row, relay=relay, upstream=upstream, run="warm", seconds=SECONDS)


async def _round(rigs: list[Rig], number: int) -> Costs:
    costs: Costs = {}
    for rig in rigs:
        await quiet(rig.relay)
        rig = msgspec.structs.replace(rig, run=f"check-{number}")
        try:
            figures = await through_own_connections(rig, LOAD)
        except FellBehind:
            costs[rig.row.name] = None
        else:
            costs[rig.row.name] = figures["us"]
    told = (
        f"{name} {'behind' if cost is None else f'{cost:.1f}'}"
        for name, cost in costs.items()
    )
    say(f"µs per token: {', '.join(told)}")
    return costs


def judge(rounds: list[Costs], ours: str, other: str, limit: float) -> str | None:
    """Returns what is wrong with the cost of a row of ours beside another's, if anything.

    Rounds in which the other row was not measured say nothing; in those where only ours
    was not, it is the slower one.
    """
    pairs = [
        (costs[ours], theirs)
        for costs in rounds
        if (theirs := costs[other]) is not None
    ]
    if not pairs:
        say(f"{other}: the machine was too busy to compare")
        return None
    ratios = [cost / theirs for cost, theirs in pairs if cost is not None]
    if not ratios:
        return f"{ours} falls behind where {other} does not"
    best = min(ratios)
    say(f"{ours} is {best:.2f} x {other} at best; at most {limit:g}")
    return None if best <= limit else f"{ours} costs more than {limit:g} x {other}"
