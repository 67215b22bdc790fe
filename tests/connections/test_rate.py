"""Counting how often something happens, with time as an argument."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.connections.rate import Recent, TokenBucket


def test_a_burst_then_the_average() -> None:
    bucket = TokenBucket(per_second=10, burst=3, now=100.0)
    assert [bucket.take(100.0) for _ in range(3)] == [0, 0, 0]
    assert bucket.take(100.0) == pytest.approx(0.1)
    assert bucket.take(100.05) == pytest.approx(0.05)
    assert bucket.take(100.1001) == 0
    assert bucket.take(100.1001) > 0


def test_silence_earns_no_more_than_a_burst() -> None:
    bucket = TokenBucket(per_second=10, burst=3, now=0.0)
    assert [bucket.take(1000.0) == 0 for _ in range(5)] == [True] * 3 + [False] * 2


def test_what_came_too_early_costs_nothing() -> None:
    bucket = TokenBucket(per_second=1, burst=1, now=0.0)
    bucket.take(0.0)
    for step in range(1, 10):
        assert bucket.take(step / 10) > 0
    assert bucket.take(1.001) == 0


@given(
    st.lists(st.floats(0, 2), min_size=1, max_size=200),
    st.integers(1, 20),
    st.floats(0.5, 50),
)
def test_never_more_than_burst_and_average(
    gaps: list[float], burst: int, per_second: float
) -> None:
    bucket = TokenBucket(per_second=per_second, burst=burst, now=0.0)
    now = 0.0
    taken = 0
    for gap in gaps:
        now += gap
        wait = bucket.take(now)
        taken += wait == 0
        assert taken <= burst + now * per_second + 1e-6
        if wait:
            now += wait + 1e-9
            assert bucket.take(now) == 0
            taken += 1


def test_more_than_the_limit_within_the_time() -> None:
    bad = Recent(limit=100, seconds=10)
    assert not any(bad.exceeded(step / 20) for step in range(100))
    assert bad.exceeded(5.0)


def test_the_limit_itself_is_allowed_for_ever() -> None:
    bad = Recent(limit=100, seconds=10)
    assert not any(bad.exceeded(step * 0.1001) for step in range(1_000))
    bad = Recent(limit=100, seconds=10)
    assert any(bad.exceeded(step * 0.0999) for step in range(1_000))
