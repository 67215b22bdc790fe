from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.model import Failure
from wsserver.engine.retry import RetryPolicy, next_attempt

JITTER = st.floats(0, 1, exclude_max=True)


def failure(
    *, retryable: bool = True, retry_after_seconds: float | None = None
) -> Failure:
    return Failure(
        code="upstream_unavailable",
        message="try later",
        retryable=retryable,
        retry_after_seconds=retry_after_seconds,
    )


@given(JITTER, st.integers(1, 10))
def test_a_final_failure_is_never_tried_again(jitter: float, attempt: int) -> None:
    assert next_attempt(failure(retryable=False), attempt, jitter=jitter) is None


def test_three_attempts_in_all() -> None:
    waits = [next_attempt(failure(), n, jitter=0.5) for n in (1, 2, 3, 4)]
    assert waits == [0.25, 0.5, None, None]


def test_one_attempt_means_no_retry() -> None:
    policy = RetryPolicy(attempts=1)
    assert next_attempt(failure(), 1, jitter=0.0, policy=policy) is None


@given(JITTER, st.integers(1, 5000))
def test_jitter_is_full_and_capped(jitter: float, attempt: int) -> None:
    policy = RetryPolicy(attempts=10_000, base_seconds=0.5, cap_seconds=8.0)
    wait = next_attempt(failure(), attempt, jitter=jitter, policy=policy)
    assert wait == jitter * min(8.0, 0.5 * 2 ** min(attempt - 1, 10))


@given(JITTER, st.floats(0, 60))
def test_what_the_upstream_asks_for_is_a_minimum(jitter: float, asked: float) -> None:
    wait = next_attempt(failure(retry_after_seconds=asked), 1, jitter=jitter)
    assert wait is not None
    assert asked <= wait <= asked + 0.5


def test_an_upstream_that_asks_for_an_hour_is_not_waited_for() -> None:
    assert next_attempt(failure(retry_after_seconds=3600.0), 1, jitter=0.0) is None
