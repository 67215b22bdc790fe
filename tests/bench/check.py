"""The short form: `python -m tests.bench --check`, for continuous integration.

It fails on a ratio of processor times that were measured side by side, never on a time:
a slow or busy machine slows all rows alike.
"""

import statistics
import sys
from contextlib import AsyncExitStack

from tests.bench.rows import BY_NAME, mock_upstream, started
from tests.bench.runner import say
from tests.bench.scenario import Rig
from tests.bench.streams import Load, through_own_connections, warm_up

ROUNDS = 3
SECONDS = 2.0
LOAD = Load(streams=50, rate=30)
OURS = "wsserver-memory"
LIMITS = {"floor": 4.0, "plain-sdk": 0.5}
"""At most so many times that row's processor time per token. Both are generous: see
the page for what is usual."""


async def check() -> None:
    """Prints the ratios; exits with 1 where one is above its limit."""
    names = [OURS, *LIMITS]
    costs: dict[str, list[float]] = {name: [] for name in names}
    async with AsyncExitStack() as stack:
        rigs: list[Rig] = []
        for name in names:
            row = BY_NAME[name]
            upstream = await stack.enter_async_context(mock_upstream())
            relay = await stack.enter_async_context(started(row, upstream))
            rig = Rig(
                row=row, relay=relay, upstream=upstream, run="warm", seconds=SECONDS
            )
            await warm_up(rig)
            rigs.append(rig)
        for number in range(ROUNDS):
            for rig in rigs:
                this = Rig(
                    row=rig.row,
                    relay=rig.relay,
                    upstream=rig.upstream,
                    run=f"check-{number}",
                    seconds=SECONDS,
                )
                figures = await through_own_connections(this, LOAD)
                costs[rig.row.name].append(figures["us"])
    if not _within(costs):
        sys.exit(1)


def _within(costs: dict[str, list[float]]) -> bool:
    medians = {name: statistics.median(values) for name, values in costs.items()}
    for name, median in medians.items():
        spread = f"{min(costs[name]):.0f} to {max(costs[name]):.0f}"
        say(f"{name:18} {median:7.1f} µs per token ({spread})")
    fine = True
    for name, limit in LIMITS.items():
        ratio = medians[OURS] / medians[name]
        verdict = "ok" if ratio <= limit else "TOO MUCH"
        fine = fine and ratio <= limit
        say(f"{OURS} is {ratio:.2f} x {name}; at most {limit:g}: {verdict}")
    return fine
