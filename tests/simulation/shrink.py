"""Makes a plan that fails smaller, so that a person can read what happened."""

from collections.abc import Callable

from msgspec.structs import replace

from tests.simulation.plan import Plan

MOST_TRIES = 60


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Returns a plan with as few steps as can be found that still fails.

    Args:
        plan: It fails.
        fails: Plays a plan.
    """
    tries = 0
    size = max(1, len(plan.steps) // 2)
    while size:
        at = 0
        while at < len(plan.steps) and tries < MOST_TRIES:
            steps = plan.steps[:at] + plan.steps[at + size :]
            smaller = replace(plan, steps=steps)
            tries += 1
            if fails(smaller):
                plan = smaller
            else:
                at += size
        size //= 2
    return plan
