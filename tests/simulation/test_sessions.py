"""Thousands of sessions in virtual time, over links, stores and models that fail.

The real connections, conversations, logs and client machine; every byte between
them goes through a link that may lose it. Whatever happens, once the link holds:
each client shows the log to the byte, no number is missing or doubled, every turn
has one start, one usage and one done, every send has effect once, every command
one reply, no tool ran twice, and a strict upstream has taken every prompt. What
was seen was stored before.

In each fifth session conversations are forked, deleted, made anew and configured too,
their logs are trimmed, and commands come again long after. Then also: a fork is its
source up to the end of a turn, what was deleted is gone before that is answered,
nothing of it comes into what is made anew, each turn has the settings of its start, and
what waited through a restart begins, in order, once somebody comes.

A seed that fails is named with its smallest plan; `python -m tests.simulation SEED`
plays it again.
"""

import pytest

from tests.simulation.plan import Plan, make_plan
from tests.simulation.shrink import shrink
from tests.simulation.world import play

SESSIONS = 1_500
PER_TEST = 250
UNDER_TRIO = 200

COVERED = 50
"""Measuring what is covered takes three times as long; the first ones say it all."""


def report(seed: int, backend: str, wrong: list[str]) -> str:
    """Says what went wrong, in the smallest plan that shows it."""

    def fails(plan: Plan) -> bool:
        return bool(play(plan, backend))

    smallest = shrink(make_plan(seed), fails)
    steps = "\n".join(f"  {step}" for step in smallest.steps)
    lines = "\n".join(f"  {line[:600]}" for line in wrong[:5])
    return f"seed {seed} under {backend}:\n{lines}\nwith the steps\n{steps}"


def test_sessions_and_what_they_cover() -> None:
    for seed in range(COVERED):
        wrong = play(make_plan(seed))
        assert not wrong, report(seed, "asyncio", wrong)


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", range(COVERED, SESSIONS, PER_TEST))
def test_sessions(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        wrong = play(make_plan(seed))
        assert not wrong, report(seed, "asyncio", wrong)


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(180)
def test_sessions_when_tasks_run_in_another_order() -> None:
    for seed in range(SESSIONS, SESSIONS + UNDER_TRIO):
        wrong = play(make_plan(seed), "trio")
        assert not wrong, report(seed, "trio", wrong)


def test_a_seed_is_played_alike_each_time() -> None:
    for seed in range(20):
        plan = make_plan(seed)
        traces: list[list[bytes]] = [[], []]
        for trace in traces:
            play(plan, trace=trace)
        assert traces[0] == traces[1]
        assert traces[0], "something was said"
