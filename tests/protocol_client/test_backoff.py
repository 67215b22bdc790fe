"""The back-off: full jitter, a cap, and a reset only after a stable period (P-08)."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from protocol.backoff import Backoff


@given(
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=12),
    floor_s=st.floats(0, 100),
)
def test_a_delay_lies_in_the_window_that_doubles_up_to_the_cap(
    draws: list[float], floor_s: float
) -> None:
    numbers = iter(draws)
    backoff = Backoff(random=lambda: next(numbers), base_s=2, cap_s=30)
    for attempt, drawn in enumerate(draws):
        window_s = min(30, 2 * 2**attempt)
        assert backoff.delay_s(floor_s) == floor_s + drawn * window_s


def test_only_a_stable_period_starts_over() -> None:
    backoff = Backoff(random=lambda: 1.0, base_s=2, cap_s=30, stable_s=30)
    assert [backoff.delay_s(), backoff.delay_s()] == [2, 4]
    backoff.held(29.9)
    assert backoff.delay_s() == 8
    backoff.held(30)
    assert backoff.attempts == 0
    assert backoff.delay_s() == 2


def test_five_hundred_clients_of_one_server_spread() -> None:
    bins: Counter[int] = Counter()
    for seed in range(500):
        backoff = Backoff(random=Random(seed).random)
        bins[int(backoff.delay_s(at_least_s=1) * 10)] += 1
    assert max(bins.values()) <= 50, "more than 10 % in the same 100 ms"
