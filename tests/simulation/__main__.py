"""Plays sessions by their seeds: `python -m tests.simulation FIRST [COUNT]`."""

import sys
import time

from tests.simulation.plan import make_plan
from tests.simulation.world import play


def main() -> None:
    first = int(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    backend = sys.argv[3] if len(sys.argv) > 3 else "asyncio"
    began = time.process_time()
    failed = 0
    for seed in range(first, first + count):
        try:
            wrong = play(make_plan(seed), backend)
        except Exception as error:
            wrong = [repr(error)]
            if count == 1:
                raise
        if wrong:
            failed += 1
            for line in wrong[: 20 if count == 1 else 1]:
                print(f"seed {seed}:", line[: 2000 if count == 1 else 300])
    took = time.process_time() - began
    print(f"{failed} of {count} failed, {1000 * took / count:.1f} ms each")


main()
