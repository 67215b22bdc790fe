"""More clients at once than there is room for, on a real port."""

import select
import socket
from collections import Counter
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from wsserver.transports import accept_queues, turned_away
from wsserver.transports.accept_queues import AcceptQueues
from wsserver.transports.turned_away import TurnedAway

MOST, SPARE = 2, 3


@pytest.fixture
def crowded(rig: Any) -> Any:
    """A listener with room for two clients, and for three to be told so."""
    listener = rig.listener
    listener._endpoint = replace(
        listener._endpoint, max_connections=MOST, spare_connections=SPARE
    )
    rig.reasons = Counter[str]()
    listener._turned_away = TurnedAway(lambda reason: rig.reasons.update([reason]))
    return rig


async def until_connected(rig: Any, count: int) -> None:
    with anyio.fail_after(10):
        while len(rig.listener._live) != count:
            await anyio.lowlevel.checkpoint()


async def test_of_those_that_come_at_once_as_many_get_in_as_there_is_room_for(
    crowded: Any,
) -> None:
    clients = [await crowded.silent() for _ in range(MOST + SPARE)]
    await until_connected(crowded, MOST + SPARE)
    statuses: list[bytes] = []
    for client in clients:
        await client.send(crowded.request())
        answer = await client.receive()
        statuses.append(answer[9:12])
        if answer[9:12] == b"503":
            assert b"\r\nRetry-After: 5\r\n" in answer
    assert statuses == [b"101"] * MOST + [b"503"] * SPARE
    assert crowded.reasons == {"full": SPARE}


async def test_beyond_that_they_are_told_before_they_say_anything(
    crowded: Any,
) -> None:
    for _ in range(MOST + SPARE):
        await crowded.silent()
    await until_connected(crowded, MOST + SPARE)
    for _ in range(3):
        client = await crowded.silent()
        answer = await client.receive_all()
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nRetry-After: 5\r\n" in answer
        assert answer.endswith(b"all connections are taken\n")
    assert crowded.reasons == {"crowd": 3}
    await until_connected(crowded, MOST + SPARE)
    assert crowded.served == []


async def test_others_are_counted_and_take_no_line(crowded: Any) -> None:
    crowded.reason = "draining"
    with capture_logs() as lines:
        _, answer = await crowded.raw()
        crowded.listener._turned_away.tell()
    assert answer[9:12] == b"503"
    assert crowded.reasons == {"draining": 1}
    assert [line for line in lines if line["event"] == "clients_turned_away"] == []


async def test_a_crowd_takes_one_line_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turned_away, "TELL_SECONDS", 0.02)
    away = TurnedAway(lambda _: None)
    with capture_logs() as lines:
        for _ in range(3):
            away.add("full")
            away.add("crowd")
        assert lines == []
        with anyio.fail_after(10):
            while not lines:
                await anyio.sleep(0.01)
        away.add("crowd")
        away.tell()
        away.tell()
        await anyio.sleep(0.05)
    told = [(line["event"], line.get("full"), line.get("crowd")) for line in lines]
    assert told == [("clients_turned_away", 3, 3), ("clients_turned_away", None, 1)]


@pytest.mark.parametrize(
    ("room", "open_connections", "size"),
    [(100_000, 0, 4096), (9_000, 6_000, 3_000), (100, 60, 40), (100, 99, 8), (1, 5, 8)],
)
def test_no_more_may_wait_than_there_are_files_for(
    room: int, open_connections: int, size: int
) -> None:
    queues = AcceptQueues(room)
    queues.fit(open_connections)
    assert queues.size == size


def test_of_those_that_take_two_files_half_as_many_may_wait() -> None:
    queues = AcceptQueues(100, files=2)
    assert queues.size == 50
    queues.fit(60)
    assert queues.size == 20


def test_the_systems_queue_is_made_to_fit() -> None:
    queues = AcceptQueues(40)
    with socket.create_server(("127.0.0.1", 0), backlog=queues.size) as listening:
        queues.watch([listening])
        queues.fit(35)
        assert queues.size == accept_queues.FEWEST
        clients = [socket.socket() for _ in range(30)]
        try:
            for client in clients:
                client.setblocking(False)
                client.connect_ex(listening.getsockname())
            _, connected, _ = select.select([], clients, [], 0.2)
            # The kernel takes one more than it was told.
            assert accept_queues.FEWEST <= len(connected) <= accept_queues.FEWEST + 2
        finally:
            for client in clients:
                client.close()
            queues.close()


async def test_a_page_that_may_not_connect_is_counted(crowded: Any) -> None:
    with capture_logs() as lines:
        _, answer = await crowded.raw(Origin="https://evil.example")
        crowded.listener._turned_away.tell()
    assert answer[9:12] == b"403"
    assert crowded.reasons == {"origin": 1}
    [line] = [line for line in lines if line["event"] == "origin_refused"]
    assert line["origin"] == "https://evil.example"


async def test_a_name_cannot_steer_the_terminal_that_shows_it() -> None:
    away = TurnedAway(lambda _: None)
    with capture_logs() as lines:
        away.add_page("https://a\x9b2Jb.example")
        away.tell()
    assert lines[0]["origin"] == r"https://a\x9b2Jb.example"


async def test_a_page_that_may_not_connect_is_named_once_a_second() -> None:
    away = TurnedAway(lambda _: None)
    with capture_logs() as lines:
        for name in ("a", "b" * 1000):
            away.add_page(f"https://{name}.example")
        away.tell()
    [line] = lines
    assert (line["event"], line["log_level"]) == ("origin_refused", "warning")
    assert line["clients"] == 2
    assert line["origin"] == f"https://{'b' * 192}"
