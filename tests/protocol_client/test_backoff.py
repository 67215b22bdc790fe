"""The back-off: full jitter, a cap, and a reset only after a stable period (P-08)."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from protocol.backoff import Backoff


@given(
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=12),
    floor_seconds=st.floats(0, 100),
)
def test_a_delay_lies_in_the_window_that_doubles_up_to_the_cap(
    draws: list[float], floor_seconds: float
) -> None:
    numbers = iter(draws)
    backoff = Backoff(random=lambda: next(numbers), base_seconds=2, cap_seconds=30)
    for attempt, drawn in enumerate(draws):
        window_seconds = min(30, 2 * 2**attempt)
        assert (
            backoff.delay_seconds(floor_seconds)
            == floor_seconds + drawn * window_seconds
        )


def test_only_a_stable_period_starts_over() -> None:
    backoff = Backoff(
        random=lambda: 1.0, base_seconds=2, cap_seconds=30, stable_seconds=30
    )
    assert [backoff.delay_seconds(), backoff.delay_seconds()] == [2, 4]
    backoff.held(29.9)
    assert backoff.delay_seconds() == 8
    backoff.held(30)
    assert backoff.attempts == 0
    assert backoff.delay_seconds() == 2


def test_five_hundred_clients_of_one_server_spread() -> None:
    bins: Counter[int] = Counter()
    for seed in range(500):
        backoff = Backoff(random=Random(seed).random)
        bins[int(backoff.delay_seconds(at_least_seconds=1) * 10)] += 1
    assert max(bins.values()) <= 50, "more than 10 % in the same 100 ms"
