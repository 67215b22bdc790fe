"""Exactly-once tools: a connection is lost with each frame of a tool turn, in turn.

Two clients run tools, answer late, twice or never. The checks are those of all
sessions: no tool runs twice, no call stays without its one result, every prompt
passes a strict upstream.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from tests.simulation.plan import Plan, Step
from tests.simulation.world import play

TOOL_TURNS = 400
CLIENTS = 2
MESSAGES = 5
MOST_FRAMES = 150
"""So that there are many sessions, not one with a long text."""


def stories() -> Iterator[Plan]:
    """Makes sessions of some messages to a model that likes to ask for tools."""
    for seed in range(20_000, 21_000):
        steps = tuple(
            Step(at=number / 2, do="send", client=number % CLIENTS, chance=number)
            for number in range(MESSAGES)
        )
        yield Plan(
            seed=seed,
            clients=CLIENTS,
            conversations=1,
            durable=True,
            pings=True,
            steps=steps,
            asks=0.8,
        )


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(120)
def test_no_tool_runs_twice_and_none_is_lost_wherever_it_is_cut(
    record_property: Callable[[str, object], None],
) -> None:
    total: Counter[str] = Counter()
    for story in stories():
        whole: Counter[str] = Counter()
        assert not play(story, tallied=whole), story
        frames = [whole[f"frames of p{client}"] for client in range(CLIENTS)]
        if not whole["tool turns"] or sum(frames) > MOST_FRAMES:
            continue
        for client in range(CLIENTS):
            for frame in range(frames[client]):
                cut = replace(story, severed=(client, frame))
                wrong = play(cut, tallied=total)
                assert not wrong, f"{cut}: {wrong}"
                total["sessions"] += 1
        if total["tool turns"] >= TOOL_TURNS:
            break
    for what, times in total.items():
        record_property(what, times)
    assert total["tool turns"] >= TOOL_TURNS
    assert total["connections lost"] >= total["sessions"]
    assert total["settled ok"] > 0.4 * total["calls"]
    for seldom in (
        "handed over or asked again", "result late", "result duplicate",
        "result conflict", "settled timeout",
    ):  # fmt: skip
        assert total[seldom] > 10, (seldom, total)
