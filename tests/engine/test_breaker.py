"""The breaker of an upstream, in virtual time."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.breaker import Breaker, BreakerPolicy

POLICY = BreakerPolicy(failures=3, window_seconds=10, open_seconds=5)
Ending = Literal["succeeded", "failed", "dropped"]


def call(breaker: Breaker, now: float, ending: Ending) -> bool:
    """Makes a call that ends at once; says whether it was admitted."""
    admitted = breaker.admit(now)
    if admitted is None:
        return False
    match ending:
        case "succeeded":
            breaker.succeeded(admitted)
        case "failed":
            breaker.failed(admitted, now)
        case "dropped":
            breaker.dropped(admitted)
    return True


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker(POLICY)
    for _ in range(POLICY.failures):
        assert call(breaker, at, "failed")
    assert breaker.state(at) == "open"
    return breaker


def test_it_opens_at_the_failure_that_is_too_many_and_says_so() -> None:
    breaker = Breaker(POLICY)
    said = [breaker.failed(breaker.admit(now) or 0, now) for now in (0.0, 1.0, 2.0)]
    assert said == [False, False, True]
    assert breaker.admit(2.0) is None
    assert breaker.wait(2.0) == 5.0
    assert breaker.wait(4.5) == 2.5


def test_failures_that_are_too_far_apart_do_not_open_it() -> None:
    breaker = Breaker(POLICY)
    for n in range(20):
        assert call(breaker, n * 5.01, "failed")
    assert call(breaker, 19 * 5.01 + 0.1, "failed")
    assert breaker.state(96.0) == "open"


def test_a_few_failures_among_many_calls_do_not_open_it() -> None:
    breaker = Breaker(POLICY)
    for n in range(300):
        assert call(breaker, n * 0.01, "failed" if n % 3 == 0 else "succeeded")
    for _ in range(2):
        call(breaker, 3.0, "failed")
    assert breaker.state(3.0) == "open"


def test_it_opens_when_half_of_the_calls_have_failed_but_not_at_less() -> None:
    for succeeded, state in [(3, "open"), (4, "closed")]:
        breaker = Breaker(POLICY)
        call(breaker, 0.0, "failed")
        for _ in range(succeeded):
            call(breaker, 0.0, "succeeded")
        for _ in range(2):
            call(breaker, 10.0, "failed")
        assert breaker.state(10.0) == state, succeeded


def test_after_the_open_time_one_call_tries_it() -> None:
    breaker = opened()
    assert breaker.admit(4.99) is None
    assert breaker.state(5.0) == "half_open"
    probe = breaker.admit(5.0)
    assert probe is not None
    assert breaker.state(5.0) == "half_open"
    assert breaker.admit(5.0) is None
    assert breaker.admit(500.0) is None
    breaker.succeeded(probe)
    assert breaker.state(500.0) == "closed"
    assert breaker.wait(500.0) == 0.0
    assert breaker.admit(500.0) is not None


def test_one_failed_probe_opens_it_again() -> None:
    breaker = opened()
    probe = breaker.admit(6.0)
    assert probe is not None
    assert breaker.failed(probe, 7.0)
    assert breaker.state(11.99) == "open"
    assert breaker.admit(11.99) is None
    assert breaker.admit(12.0) is not None


def test_a_probe_that_was_given_up_lets_the_next_call_try() -> None:
    breaker = opened()
    probe = breaker.admit(5.0)
    assert probe is not None
    breaker.dropped(probe)
    again = breaker.admit(5.0)
    assert again is not None
    breaker.succeeded(probe)  # too late to say anything
    assert breaker.state(5.0) == "half_open"
    breaker.succeeded(again)
    assert breaker.state(5.0) == "closed"


def test_calls_from_before_an_outage_do_not_end_it() -> None:
    breaker = Breaker(POLICY)
    old = breaker.admit(0.0)
    assert old is not None
    for _ in range(3):
        call(breaker, 0.0, "failed")
    breaker.succeeded(old)
    assert breaker.state(0.0) == "open"
    probe = breaker.admit(5.0)
    assert probe is not None
    assert not breaker.failed(old, 5.0)
    breaker.dropped(old)
    assert breaker.admit(5.0) is None, "the probe is still out"
    breaker.succeeded(probe)
    assert not breaker.failed(old, 5.0)
    assert breaker.state(5.0) == "closed"


def test_what_failed_before_it_opened_is_forgotten_when_it_closes() -> None:
    breaker = opened()
    assert call(breaker, 5.0, "succeeded")
    for _ in range(2):
        assert call(breaker, 5.0, "failed")
    assert breaker.state(5.0) == "closed"
    assert call(breaker, 5.0, "failed")
    assert breaker.state(5.0) == "open"


ENDINGS = st.sampled_from(["succeeded", "failed", "failed", "dropped"])


@given(
    st.builds(
        BreakerPolicy,
        failures=st.integers(1, 4),
        window_seconds=st.integers(1, 10),
        open_seconds=st.integers(1, 10),
    ),
    st.lists(st.tuples(st.integers(0, 4), ENDINGS), max_size=60),
)
def test_it_does_what_the_words_say(
    policy: BreakerPolicy, steps: list[tuple[int, Ending]]
) -> None:
    """Against a model that keeps the whole history."""
    breaker = Breaker(policy)
    now, open_until = 0.0, None
    ended: list[tuple[float, bool]] = []  # since it was closed last
    for pause, ending in steps:
        now += pause
        if open_until is not None and now < open_until:
            assert breaker.state(now) == "open"
            assert breaker.wait(now) == open_until - now
            assert not call(breaker, now, ending)
            continue
        assert breaker.state(now) == ("closed" if open_until is None else "half_open")
        assert call(breaker, now, ending)
        if ending == "dropped":
            continue
        if open_until is not None:
            open_until = now + policy.open_seconds if ending == "failed" else None
            ended = []
            continue
        ended.append((now, ending == "failed"))
        failures = [n for n, (_, failed) in enumerate(ended) if failed]
        if ending == "failed" and len(failures) >= policy.failures:
            first = failures[-policy.failures]
            recent = now - ended[first][0] <= policy.window_seconds
            if recent and 2 * policy.failures >= len(ended) - first:
                open_until, ended = now + policy.open_seconds, []
    expected = "closed"
    if open_until is not None:
        expected = "open" if now < open_until else "half_open"
    assert breaker.state(now) == expected
