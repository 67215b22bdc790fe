"""Compares what a delivered token costs: `python -m tests.bench`.

Every row streams the same answers from the same mock upstream through another
relay, in turn, several times; the figures are medians of the relay's processor
time. Ratios are to `floor`, a websockets server that only sends.
"""

import argparse
import asyncio
import statistics
import sys

from tests.bench.relay import OURS, PLAIN, relay, upstream
from tests.bench.scenarios import Cost, Load, measure

LOADS = {
    "50x30": Load(streams=50, tokens=200, rate=30),
    "200x30": Load(streams=200, tokens=150, rate=30),
    "500x30": Load(streams=500, tokens=150, rate=30),
    "1000x30": Load(streams=1000, tokens=150, rate=30),
    "flat-out": Load(streams=10, tokens=10_000, rate=0),
}


async def _compare(names: list[str], loads: list[str], runs: int) -> None:
    async with upstream() as source:
        for load_name in loads:
            load = LOADS[load_name]
            costs: dict[str, list[Cost]] = {name: [] for name in names}
            for _ in range(runs):
                for name in names:
                    async with relay(name, source.port) as process:
                        costs[name].append(await measure(name, process, load))
            _print(load_name, costs)


def _print(load_name: str, costs: dict[str, list[Cost]]) -> None:
    def median(name: str) -> float:
        return statistics.median(cost.us_per_token for cost in costs[name])

    base = median("floor") if "floor" in costs else None
    for name, runs in costs.items():
        values = sorted(cost.us_per_token for cost in runs)
        ratio = "" if base is None else f"{median(name) / base:6.2f} x floor"
        line = (
            f"{load_name:10} {name:18} {median(name):8.1f} us/token"
            f" ({values[0]:.1f} to {values[-1]:.1f}) {ratio}"
            f"  {statistics.median(c.seconds for c in runs):.1f} s"
            f"  {runs[0].frames} frames  {runs[0].rss_bytes >> 20} MiB"
        )
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def main() -> None:
    """Runs the comparison that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument(
        "--rows", default="floor,wsserver-memory,wsserver-sqlite,plain-sdk"
    )
    parser.add_argument("--loads", default="50x30,200x30,flat-out")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    known = {*OURS, *PLAIN}
    names = options.rows.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no such rows: {unknown}; there are {sorted(known)}")
    asyncio.run(_compare(names, options.loads.split(","), options.runs))


if __name__ == "__main__":
    main()
