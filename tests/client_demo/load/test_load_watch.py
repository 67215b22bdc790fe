"""The times of a message, by the events that came when."""

import pytest

from client_demo.load.figures import Measure
from client_demo.load.scenario import Prompt
from client_demo.load.tally import Tally
from client_demo.load.turn_watch import TurnWatch
from protocol.events import LogEvent
from tests.client_demo.load.log import event, turn


class Rig:
    """A watch on the send `m1`, at time 100."""

    def __init__(self, *, late_seconds: float = 0.0, measured: bool = True) -> None:
        self.tally = Tally(lambda: 0.0)
        self.watch = TurnWatch(
            "m1", self.tally, sent_at=100.0, late_seconds=late_seconds, measured=measured,
            prompt=Prompt(name="p", text="x"),
        )  # fmt: skip

    def take(self, events: list[LogEvent], *times: float) -> None:
        for one, time in zip(events, times, strict=True):
            self.watch.take(one, time)

    def ms(self, measure: Measure) -> list[float]:
        histogram = self.tally.histogram(measure)
        if histogram is None:
            return []
        fields = histogram.fields_ms()
        return [fields["count"], fields["min"], fields["max"]]


EVENTS = turn(1, "a", "b", "c")
TIMES = (100.1, 100.2, 100.5, 100.6, 100.9, 101, 101)


def near(*values: float) -> object:
    return pytest.approx(list(values), rel=2e-3)


def test_a_turn_has_its_times() -> None:
    rig = Rig()
    rig.take(EVENTS, *TIMES)
    assert rig.ms("ttft") == near(1, 500, 500)
    assert rig.ms("gap") == near(2, 100, 300)
    assert rig.ms("tpot") == near(1, 250, 250)
    assert rig.ms("turn") == near(1, 1000, 1000)
    assert (rig.watch.over, rig.watch.tokens, rig.watch.pieces) == (True, 3, [3, 4, 5])
    assert rig.tally.counters["statuses.completed"] == 1
    (time,) = rig.tally.prompts
    assert (time.ttft_ms, time.tpot_ms, time.output_tokens) == (500, 250, 3)


def test_times_count_from_when_the_send_was_due() -> None:
    rig = Rig(late_seconds=2.0)
    rig.take(EVENTS, *TIMES)
    assert rig.ms("ttft") == near(1, 2500, 2500)
    assert rig.ms("turn") == near(1, 3000, 3000)
    assert rig.ms("gap") == near(2, 100, 300)


def test_a_lost_connection_and_a_tool_make_no_gap() -> None:
    rig = Rig()
    rig.take(EVENTS[:3], *TIMES[:3])
    rig.watch.lost()
    rig.watch.take(EVENTS[3], 109.0)
    call = event(
        "tool_call", 5, turn=2, call="k", name="t", arguments={}, batch=0, index=0,
        deadline_at="2026-01-02T03:04:05.678Z",
    )  # fmt: skip
    rig.watch.take(call, 110.0)
    rig.watch.take(event("delta", 6, turn=2, text="x"), 120.0)
    assert rig.ms("gap") == []
    assert rig.tally.counters["tokens"] == 3


def test_what_is_not_measured_is_counted_all_the_same() -> None:
    rig = Rig(measured=False)
    rig.take(EVENTS, *TIMES)
    assert rig.ms("ttft") == rig.ms("turn") == rig.ms("gap") == []
    assert rig.tally.counters["ended"] == 1
    spoilt = Rig()
    spoilt.take(EVENTS[:3], *TIMES[:3])
    spoilt.watch.spoil()
    spoilt.take(EVENTS[3:], *TIMES[3:])
    assert spoilt.ms("gap") == spoilt.ms("turn") == []


def test_another_message_is_nothing_to_it() -> None:
    rig = Rig()
    rig.take(turn(1, "a", send="m2"), *TIMES[:5])
    assert not rig.watch.over
    assert rig.tally.counters["tokens"] == 0


def test_a_steer_ends_with_the_turn_it_joined_or_with_its_own() -> None:
    first, second = turn(1, "a", send="m0"), turn(8, "b")
    steer = event(
        "message", 3, id="m1", role="user", content="x", by="me", steers=2,
        at="2026-01-02T03:04:05.678Z",
    )  # fmt: skip
    rig = Rig()
    rig.take([*first[:2], steer, *first[3:]], 1, 2, 3, 4, 5)
    assert rig.watch.over
    begun = event(
        "start", 9, turn=9, message=3, model="m", request_id="r",
        at="2026-01-02T03:04:05.678Z",
    )  # fmt: skip
    rig.watch.take(begun, 6)
    assert not rig.watch.over, "its turn ended too soon: it has one of its own"
    rig.take(second[2:], 7, 8, 9)
    assert rig.watch.over
    assert rig.tally.counters["ended"] == 2
