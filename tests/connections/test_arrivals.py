"""When numbers came: never later than they did, and hardly earlier."""

from hypothesis import given
from hypothesis import strategies as st

from wsserver.connections.arrivals import MOST_MARKS, Arrivals

GRAIN = 1.0
STEPS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([0.0, 0.3, 1.0, 2.5])), max_size=80
)


@given(STEPS, st.data())
def test_it_remembers_about_when(
    steps: list[tuple[int, float]], data: st.DataObject
) -> None:
    arrivals = Arrivals(grain_seconds=GRAIN, seq=5, at=-9.0)
    came = {5: -9.0}
    now = 0.0
    seq = 5
    for count, pause in steps:
        for _ in range(count):
            seq += 1
            came[seq] = now
        arrivals.came(seq, now)
        arrivals.came(seq, now + 0.1)  # nothing new
        now += pause
    assert len(arrivals._marks) <= MOST_MARKS
    age = data.draw(st.sampled_from([0.0, 1.0, 2.5, 7.0]))
    through, until = arrivals.older(age, now), now - age
    exact = max((n for n, at in came.items() if at <= until), default=0)
    assert through >= exact
    if len(steps) < MOST_MARKS:
        early = max((n for n, at in came.items() if at <= until + GRAIN), default=0)
        assert through <= early
    for asked in sorted(data.draw(st.sets(st.sampled_from(sorted(came))))):
        said = arrivals.of(asked)
        assert said <= came[asked]
        if len(steps) < MOST_MARKS:
            assert said > came[asked] - GRAIN


def test_what_comes_at_about_the_same_time_is_one_mark() -> None:
    arrivals = Arrivals(grain_seconds=GRAIN, seq=0, at=-9.0)
    for n in range(1, 101):
        arrivals.came(n, n * GRAIN / 8)
    assert len(arrivals._marks) == 1 + 100 // 8 + 1
    assert arrivals.newest == 97 * GRAIN / 8


def test_what_is_long_ago_counts_as_longer_ago_never_as_less() -> None:
    arrivals = Arrivals(grain_seconds=0.0, seq=0, at=-9.0)
    for n in range(1, 3 * MOST_MARKS):
        arrivals.came(n, float(n))
    assert len(arrivals._marks) == MOST_MARKS
    assert arrivals.of(1) == -9.0
    assert arrivals.of(3 * MOST_MARKS - 2) == 3 * MOST_MARKS - 2
