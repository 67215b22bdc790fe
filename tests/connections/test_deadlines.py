"""Heartbeats, dead and slow peers, expiry: decided without a clock."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codes import CloseCode
from tests.connections.wire import SETTINGS
from wsserver.connections.deadlines import Deadlines, Due, Pulse

IDLE = Pulse(received_bytes=0, drained_bytes=0, buffered=False, due=False)
PINGS = msgspec.structs.replace(SETTINGS, transport_pings=True)


def pulse(**members: Any) -> Pulse:
    return msgspec.structs.replace(IDLE, **members)


def play(
    deadlines: Deadlines, at: Callable[[float], Pulse], until: float, start: float = 0.0
) -> list[tuple[float, Due]]:
    """Looks when it is told to, as the connection does; ends with a close."""
    out: list[tuple[float, Due]] = []
    now = start
    while now <= until:
        due = deadlines.check(now, at(now))
        out.append((now, due))
        if due.close is not None:
            break
        assert due.check_at > now, "time goes on"
        now = due.check_at
    return out


def greeted(settings: Any = SETTINGS) -> Deadlines:
    deadlines = Deadlines(settings, 0.0)
    deadlines.heard()
    deadlines.greeted(0.0)
    return deadlines


def test_no_hello_in_time() -> None:
    log = play(Deadlines(SETTINGS, 0.0), lambda _: IDLE, 100)
    assert log[-1] == (5.0, Due(close=CloseCode.NO_HELLO))


def test_a_heartbeat_each_twenty_seconds() -> None:
    log = play(greeted(), lambda now: pulse(received_bytes=int(now)), 100)
    assert [now for now, due in log if due.heartbeat] == [20, 40, 60, 80, 100]


def test_a_silent_connection_that_takes_heartbeats_lives() -> None:
    log = play(greeted(), lambda now: pulse(drained_bytes=int(now // 20)), 600)
    assert log[-1][1].close is None


def test_nothing_in_and_nothing_out_is_dead() -> None:
    log = play(greeted(), lambda _: IDLE, 600)
    assert log[-1] == (60.0, Due(close=CloseCode.DEAD))


def test_where_the_transport_pings_taking_heartbeats_is_no_life() -> None:
    log = play(greeted(PINGS), lambda now: pulse(drained_bytes=int(now)), 600)
    assert log[-1] == (60.0, Due(close=CloseCode.DEAD))


def test_where_the_transport_pings_answers_are_life() -> None:
    log = play(greeted(PINGS), lambda now: pulse(received_bytes=int(now // 20)), 600)
    assert log[-1][1].close is None


def test_where_the_transport_pings_a_full_buffer_that_drains_is_life() -> None:
    """A slow client may answer late: its pongs wait behind what it reads."""
    log = play(
        greeted(PINGS),
        lambda now: pulse(drained_bytes=int(now), buffered=True, due=True),
        600,
    )
    assert log[-1][1].close is None


@pytest.mark.parametrize("due", [pulse(buffered=True), pulse(due=True)])
def test_something_due_and_nothing_drained_is_slow(due: Pulse) -> None:
    def at(now: float) -> Pulse:
        return msgspec.structs.replace(due, received_bytes=int(now))

    log = play(greeted(), at, 600)
    assert log[-1] == (30.0, Due(close=CloseCode.SLOW))


def test_a_stall_is_seen_in_time_and_not_before() -> None:
    """It begins between two looks, so it is seen a fraction of the limit late."""

    def at(now: float) -> Pulse:
        stalled = now >= 101.0
        return pulse(
            received_bytes=int(now),
            drained_bytes=int(min(now, 101.0)),
            buffered=stalled,
        )

    now, due = play(greeted(), at, 600)[-1]
    assert due.close is CloseCode.SLOW
    assert 131.0 <= now <= 131.0 + 30 / 4


def test_while_something_is_due_a_stall_is_seen_soon() -> None:
    def at(now: float) -> Pulse:
        drained = int(10 * min(now, 101.0))
        return pulse(received_bytes=int(now), drained_bytes=drained, due=True)

    now, due = play(greeted(), at, 600)[-1]
    assert due.close is CloseCode.SLOW
    assert 131.0 <= now <= 131.0 + 30 / 16


def test_a_trickle_is_not_slow() -> None:
    log = play(
        greeted(),
        lambda now: pulse(drained_bytes=int(now // 25), buffered=True, due=True),
        1000,
    )
    assert log[-1][1].close is None


def test_time_without_anything_due_does_not_count() -> None:
    def at(now: float) -> Pulse:
        return pulse(received_bytes=int(now), buffered=now > 1000)

    now, due = play(greeted(), at, 2000)[-1]
    assert due.close is CloseCode.SLOW
    assert 1030 <= now <= 1038


def test_credentials_that_end() -> None:
    log = play(
        greeted(), lambda now: pulse(received_bytes=int(now), expires_in=200 - now), 300
    )
    assert [now for now, due in log if due.expiring] == [140]
    assert log[-1] == (200.0, Due(close=CloseCode.UNAUTHORIZED))


def test_credentials_shorter_than_the_notice() -> None:
    log = play(greeted(), lambda now: pulse(expires_in=3 - now), 300)
    assert log[0][1].expiring
    assert log[-1] == (3.0, Due(close=CloseCode.UNAUTHORIZED))


def test_refreshed_credentials() -> None:
    deadlines = greeted()
    log = play(
        deadlines, lambda now: pulse(received_bytes=int(now), expires_in=100 - now), 50
    )
    assert [now for now, due in log if due.expiring] == [40]
    deadlines.refreshed()
    log = play(
        deadlines,
        lambda now: pulse(received_bytes=int(now), expires_in=1000 - now),
        2000,
        start=log[-1][1].check_at,
    )
    assert [now for now, due in log if due.expiring] == [940]
    assert log[-1][0] == 1000


@given(
    st.lists(
        st.tuples(st.floats(0.1, 50), st.booleans(), st.booleans(), st.booleans()),
        max_size=60,
    )
)
def test_never_closed_early(steps: list[tuple[float, bool, bool, bool]]) -> None:
    """Random traffic; the model is the two sentences of the protocol."""
    deadlines = greeted()
    changes: list[tuple[float, Pulse]] = []
    received = drained = 0
    now = 0.0
    for gap, receives, drains, is_due in steps:
        now += gap
        received += receives
        drained += drains
        changes.append(
            (
                now,
                pulse(received_bytes=received, drained_bytes=drained, buffered=is_due),
            )
        )

    def at(moment: float) -> Pulse:
        return ([p for when, p in changes if when <= moment] or [IDLE])[-1]

    when, last = play(deadlines, at, now + 200)[-1]
    if last.close is CloseCode.DEAD:
        before, after = at(when - 59.9), at(when)
        assert before.received_bytes == after.received_bytes
        assert before.drained_bytes == after.drained_bytes
    elif last.close is CloseCode.SLOW:
        assert at(when).buffered
        assert at(when - 29.9).drained_bytes == at(when).drained_bytes


@given(start=st.floats(0, 1e6), moved=st.floats(0, 20))
def test_it_never_looks_again_at_once(start: float, moved: float) -> None:
    deadlines = Deadlines(SETTINGS, start)
    deadlines.heard()
    deadlines.greeted(start)

    def at(now: float) -> Pulse:
        drained = int(now >= start + moved)
        left = start + 300.0 - now
        return pulse(
            received_bytes=int(now), drained_bytes=drained, due=True, expires_in=left
        )

    log = play(deadlines, at, start + 1000, start)
    assert log[-1][1].close is not None
