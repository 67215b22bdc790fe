"""Who comes when."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_demo.load.durations import Exponential, Normal, Uniform, draw
from client_demo.load.scenario import Group, Stage
from client_demo.load.stages import (
    arrivals,
    due_seconds,
    group_of,
    length_seconds,
    most_users,
)
from client_demo.load.steps import OpenStep

RAMPS = [
    Stage(seconds=10, users=20), Stage(seconds=5, users=20), Stage(seconds=10, users=0),
]  # fmt: skip


def test_users_come_evenly_and_go_evenly() -> None:
    assert [due_seconds(RAMPS, user, 0.0) for user in (0, 9, 19)] == [0.5, 5.0, 10.0]
    assert due_seconds(RAMPS, 3, 12.0) == 12.0, "at it already"
    assert due_seconds(RAMPS, 9, 19.9) == 19.9
    assert due_seconds(RAMPS, 9, 20.1) is None, "half of them have gone"
    assert due_seconds(RAMPS, 0, 25.1) is None
    assert due_seconds(RAMPS, 20, 0.0) is None
    assert (length_seconds(RAMPS), most_users(RAMPS)) == (25, 20)


def test_who_went_may_be_wanted_again() -> None:
    again = [*RAMPS, Stage(seconds=10, users=10)]
    assert due_seconds(again, 4, 24.0) == pytest.approx(30.0)


def test_a_stage_of_no_time_brings_all_at_once() -> None:
    stages = [Stage(seconds=0, users=3), Stage(seconds=2, users=3)]
    assert [due_seconds(stages, user, 0.0) for user in range(4)] == [
        0.0,
        0.0,
        0.0,
        None,
    ]
    assert due_seconds(stages, 2, 1.0) == 1.0
    assert due_seconds([stages[0]], 2, 0.5) is None


def rates(*pairs: tuple[float, float]) -> list[Stage]:
    return [Stage(seconds=s, arrivals_per_second=rate) for s, rate in pairs]


@given(st.integers(0, 2**32))
def test_people_arrive_in_order_and_as_many_as_said(seed: int) -> None:
    stages = rates((10, 20), (10, 20), (10, 0))
    times = list(arrivals(stages, Random(seed)))
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= 30
    assert 400 * 0.7 < len(times) < 400 * 1.3
    ramp = Counter(time < 5 for time in times if time < 10)
    assert ramp[True] < ramp[False], "a quarter comes in the first half of the ramp"
    assert times == list(arrivals(stages, Random(seed)))


def group(name: str, weight: float) -> Group:
    return Group(name=name, weight=weight, steps=[OpenStep()])


@given(st.integers(8, 2000), st.lists(st.floats(0.1, 10), min_size=1, max_size=5))
def test_any_number_of_users_shows_the_weights(
    users: int, weights: list[float]
) -> None:
    groups = [group(str(place), weight) for place, weight in enumerate(weights)]
    found = Counter(group_of(groups, user).name for user in range(users))
    for one in groups:
        assert abs(found[one.name] - users * one.weight / sum(weights)) <= 8


@pytest.mark.parametrize(
    ("duration", "low", "high"),
    [
        (2.0, 2, 2),
        (Uniform(min=1, max=3), 1, 3),
        (Exponential(mean=2, max=4), 0, 4),
        (Exponential(mean=0), 0, 0),
        (Normal(mean=1, deviation=1), 0, 9),
    ],
)
def test_times_are_drawn_within_bounds(
    duration: object, low: float, high: float
) -> None:
    random = Random(1)
    drawn = [draw(duration, random) for _ in range(200)]  # type: ignore[arg-type]
    assert low <= min(drawn) <= max(drawn) <= high
