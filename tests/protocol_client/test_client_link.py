"""Connecting, liveness and what close codes ask for."""

from collections import Counter
from random import Random

import pytest

from protocol.client.events import Disconnected, DropConnection, Stopped
from protocol.client.link import LATE_SECONDS, ClientStateError
from protocol.codes import CloseCode, advice
from protocol.control import Goaway
from tests.protocol_client.wire import Wire


@pytest.mark.parametrize("code", sorted(CloseCode))
def test_close_codes_are_obeyed(online: Wire, code: CloseCode) -> None:
    online.client.disconnected(code, online.now)
    match advice(code):
        case "stop":
            assert online.only(Stopped).code == code
            assert online.client.phase == "stopped"
            assert online.client.next_timer() is None
        case "back_off":
            assert online.only(Disconnected).retry_in_seconds == 1.0
            assert online.client.next_timer() == online.now + 1.0
        case "reconnect_now":
            assert online.only(Disconnected).retry_in_seconds == 0


def test_a_stop_carries_what_the_server_said_last(wire: Wire) -> None:
    wire.client.connected(wire.now)
    wire.receive_json(
        type="error", code="unauthorized", message="token expired", retryable=False
    )
    wire.events()
    wire.client.disconnected(4401, wire.now)
    error = wire.only(Stopped).error
    assert error is not None
    assert error.code == "unauthorized"


def test_attempts_that_fail_back_off_and_only_a_stable_time_starts_over(
    wire: Wire,
) -> None:
    """P-08, the client's part."""

    def retry() -> float:
        wire.client.disconnected(None, wire.now)
        delay_seconds = wire.only(Disconnected).retry_in_seconds
        wire.advance_to_timer()
        assert wire.client.phase == "connecting"
        return delay_seconds

    assert [retry(), retry(), retry()] == [1, 2, 4]
    wire.connect()
    wire.now += 29
    assert retry() == 8, "29 s are not stable"
    wire.connect()
    wire.now += 30
    assert retry() == 1


@pytest.mark.parametrize("goaway", [True, False])
def test_five_hundred_clients_of_a_server_that_restarts_come_back_spread(
    goaway: bool,
) -> None:
    """P-08: whole clients; it takes no connection for 3 s, so some try more than once."""
    back_at: list[float] = []
    attempts: list[float] = []
    for number in range(500):
        wire = Wire(Random(number).random)
        wire.connect()
        wire.now = 200.0
        if goaway:
            wire.receive(
                Goaway(deadline_ms=0, reconnect_after_ms=1000, reason="restart")
            )
        wire.client.disconnected(CloseCode.RESTART, wire.now)
        while True:
            wire.advance_to_timer()
            attempts.append(wire.now)
            if wire.now >= 203.0:
                break
            wire.client.disconnected(None, wire.now)
        wire.connect()
        back_at.append(wire.now)
    for times in (attempts, back_at):
        bins = Counter(int(10 * (at - 200.0)) for at in times)
        assert max(bins.values()) <= 50, f"more than 10 % in the same 100 ms: {bins}"
    assert len(back_at) == 500
    assert max(back_at) < 203.0 + 30.0, "no wait is longer than the cap"


def test_reconnect_now_is_not_a_loop(online: Wire) -> None:
    delays: list[float] = []
    for _ in range(3):
        online.client.disconnected(4601, online.now)
        delays.append(online.only(Disconnected).retry_in_seconds)
        online.connect()
        online.events()
    assert delays == [0, 2, 4]


@pytest.mark.parametrize("code", [4601, 1012, None])
def test_goaway_sets_a_floor_under_the_jitter(online: Wire, code: int | None) -> None:
    online.receive(Goaway(deadline_ms=5000, reconnect_after_ms=3000, reason="restart"))
    assert online.only(Goaway).reason == "restart"
    assert online.client.phase == "online", "what runs may finish"
    online.now += 1
    online.client.disconnected(code, online.now)
    assert online.only(Disconnected).retry_in_seconds == 3.0 + 1.0
    online.connect()
    online.client.disconnected(None, online.now)
    assert online.events()[-1] == Disconnected(code=None, retry_in_seconds=2.0)


def test_silence_for_two_and_a_half_heartbeats_is_death(online: Wire) -> None:
    began = online.now
    online.now += 15
    online.receive_json(type="ping", t=1, heads={})
    pings = 0
    while not (told := online.events()):
        online.advance_to_timer()
        pings += sum(frame["type"] == "ping" for frame in online.sent())
    assert told == [DropConnection(why="silent")]
    assert online.now == began + 15 + 50
    assert pings == 3, "data flows from this side too, for proxies that count it"
    assert online.client.next_timer() is None, "the driver was told"


def test_a_process_that_slept_gives_the_server_another_heartbeat(online: Wire) -> None:
    """C-08: a late timer says nothing about the server."""
    online.now += 3600
    online.client.timer(online.now)
    assert not online.events()
    online.receive_json(type="ping", t=1, heads={})
    online.now += 49
    online.client.timer(online.now)
    assert not online.events()
    online.advance_to_timer()
    assert online.only(DropConnection).why == "silent"


def test_who_slept_beside_a_dead_server_finds_out_a_heartbeat_later(
    online: Wire,
) -> None:
    dead_at = online.now + 50
    online.now = dead_at + LATE_SECONDS + 0.001
    online.client.timer(online.now)
    assert not online.events()
    asked = online.now
    while not (told := online.events()):
        online.advance_to_timer()
    assert told == [DropConnection(why="silent")]
    assert online.now == asked + 20


def test_a_timer_that_is_hardly_late_tells_of_the_server(online: Wire) -> None:
    online.now += 50 + LATE_SECONDS
    online.client.timer(online.now)
    assert online.only(DropConnection).why == "silent"


def test_a_hello_without_welcome_is_given_up(wire: Wire) -> None:
    wire.client.connected(wire.now)
    wire.advance_to_timer()
    assert wire.now == 110
    assert wire.only(DropConnection).why == "no_welcome"
    wire.client.disconnected(None, wire.now)
    assert wire.client.phase == "offline"


def test_impossible_inputs_change_nothing(wire: Wire) -> None:
    with pytest.raises(ClientStateError):
        wire.client.received(b"{}", wire.now)
    wire.connect()
    with pytest.raises(ClientStateError):
        wire.client.connected(wire.now)
    assert wire.client.phase == "online"
    wire.client.disconnected(None, wire.now)
    with pytest.raises(ClientStateError):
        wire.client.disconnected(None, wire.now)
    assert wire.client.phase == "offline"
