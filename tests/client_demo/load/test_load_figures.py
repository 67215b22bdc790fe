"""Figures: histograms, series, tallies of many processes, thresholds on them."""

import math
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_demo.load.figures import FIELDS, MEASURES, RATES, TOTALS
from client_demo.load.histogram import Histogram
from client_demo.load.series import Bucket, Series
from client_demo.load.tally import Counts, Tally
from client_demo.load.thresholds import ThresholdError, judge, read_threshold
from client_demo.load.violations import Violation

TIMES = st.lists(st.floats(1e-5, 1000), min_size=1, max_size=60)


def histogram(times: list[float]) -> Histogram:
    made = Histogram()
    for time in times:
        made.record(time)
    return made


@given(TIMES, TIMES)
def test_percentiles_are_those_of_all_times_to_a_tenth_of_a_percent(
    left: list[float], right: list[float]
) -> None:
    merged = histogram(left)
    merged.add(histogram(right).encode())
    times = sorted(left + right)
    fields = merged.fields_ms()
    assert tuple(fields) == FIELDS
    assert fields["count"] == len(times)
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
        place = max(1, int(share * len(times) + 0.5)) - 1
        assert fields[name] == pytest.approx(1000 * times[place], rel=2e-3, abs=2e-3)
    mean = 1000 * math.fsum(times) / len(times)
    assert fields["mean"] == pytest.approx(mean, rel=2e-3, abs=2e-3)
    curve = merged.curve_ms()
    assert curve == sorted(curve)
    assert curve[-1][1] == fields["max"]


def test_times_out_of_range_count_as_the_nearest() -> None:
    fields = histogram([0.0, -1.0, 1e9]).fields_ms()
    assert (fields["count"], fields["min"]) == (3, 0.001)
    assert fields["max"] == pytest.approx(7.2e6, rel=1e-3)
    assert Histogram().fields_ms() == {"count": 0}
    assert Histogram().curve_ms() == []


def test_a_long_run_has_no_more_buckets() -> None:
    series = Series(buckets=[])
    for second in range(1000):
        bucket = series.at(second)
        bucket.tokens += 2
        bucket.users = max(bucket.users, second % 7)
        bucket.statuses["completed"] = bucket.statuses.get("completed", 0) + 1
        bucket.ttft_ms[1.0] = bucket.ttft_ms.get(1.0, 0) + 1
    assert series.width_seconds == 8
    assert len(series.buckets) == 125
    assert {bucket.tokens for bucket in series.buckets} == {16}
    assert {bucket.users for bucket in series.buckets} == {6}
    assert series.buckets[3].statuses == {"completed": 8}
    assert series.buckets[3].ttft_ms == {1.0: 8}


def test_series_of_two_processes_lie_on_each_other() -> None:
    short = Series(
        buckets=[Bucket(users=1, tokens=5, statuses={"failed": 1}, errors=2)]
    )
    long = Series(
        width_seconds=2, buckets=[Bucket(users=2), Bucket(users=3, ttft_ms={4.0: 2})]
    )
    short.add(long)
    assert (short.width_seconds, [bucket.users for bucket in short.buckets]) == (
        2,
        [3, 3],
    )
    assert short.buckets[0].statuses == {"failed": 1}
    assert (short.buckets[0].errors, short.buckets[1].ttft_ms) == (2, {4.0: 2})
    wide = Series(width_seconds=2, buckets=[Bucket(users=4)])
    wide.add(Series(buckets=[Bucket(users=1), Bucket(users=3)]))
    assert [bucket.users for bucket in wide.buckets] == [7], "at the same time"


def tally(seed: int) -> Tally:
    made = Tally(lambda: float(seed))
    random = Random(seed)
    for _ in range(5):
        made.count("turns")
        made.first_token(random.random())
        made.ended("completed", None)
    made.ended("incomplete", "upstream_stalled")
    made.tokens(7)
    made.error("busy")
    made.user(1)
    made.user(-1)
    made.violation(Violation(kind="gap", conversation="c", seq=1, what="x"))
    return made


def test_tallies_of_many_make_one() -> None:
    whole = Tally(lambda: 0.0)
    for seed in range(3):
        data = msgspec.json.encode(tally(seed).counts())
        whole.add(msgspec.json.decode(data, type=Counts))
    figures = whole.figures(10.0, [[20.0, 90.0], [10.0]])
    assert figures["ttft_ms.count"] == figures["turns"] == 15
    assert figures["completed.rate"] == pytest.approx(15 / 18)
    assert figures["incomplete.rate"] == pytest.approx(3 / 18)
    assert figures["errors.rate"] == pytest.approx(3 / 15)
    assert figures["tokens.per_second"] == pytest.approx(2.1)
    assert figures["oracle.violations"] == figures["violations.gap"] == 3
    assert (figures["cpu.max"], figures["cpu.mean"]) == (90, 40)
    assert whole.by_code()["statuses"] == {
        "completed": 15,
        "incomplete/upstream_stalled": 3,
    }
    assert [bucket.tokens for bucket in whole.series.buckets] == [7, 7, 7]
    assert len(whole.violations) == 3


def test_every_figure_that_a_threshold_may_name_is_there() -> None:
    figures = tally(1).figures(1.0, [])
    assert figures.keys() >= {*RATES, *TOTALS, *(f"{one}_ms.count" for one in MEASURES)}


@pytest.mark.parametrize(
    ("text", "held", "value"),
    [
        ("ttft_ms.p99 < 500", True, 499.5),
        ("ttft_ms.p99 <= 499.5", True, 499.5),
        ("ttft_ms.p99 > 499.5", False, 499.5),
        ("  ttft_ms.p99>=1 ", True, 499.5),
        ("turns != 3", False, 3),
        ("turns == 3", True, 3),
        ("resume_ms.p99 < 9", False, None),
        ("errors.busy == 0", True, 0),
        ("statuses.incomplete/upstream_stalled < 1", True, 0),
        ("ttft_ms.p50 > -1", False, None),
    ],
)
def test_thresholds_are_held_against_figures(
    text: str, held: bool, value: float | None
) -> None:
    judged = judge(read_threshold(text), {"ttft_ms.p99": 499.5, "turns": 3})
    assert (judged.held, judged.value) == (held, value)
    assert judged.threshold == text.strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ttft_ms.p99", "is not NAME OPERATOR NUMBER"),
        ("ttft_ms.p99 < many", "is not NAME OPERATOR NUMBER"),
        ("ttft_ms.p98 < 5", "did you mean ttft_ms.p99"),
        ("fun < 5", "there is no figure 'fun'"),
    ],
)
def test_what_is_no_threshold_is_told(text: str, said: str) -> None:
    with pytest.raises(ThresholdError, match=said):
        read_threshold(text)
