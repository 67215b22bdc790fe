"""Handshakes of TLS: as bounded, in number and time, as all other connections."""

import ssl
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from websockets.asyncio.client import connect

from tests.lifecycle.renewed import Pair, trusting
from wsserver.transports import listener
from wsserver.transports.certificate import Certificate, read_certificate
from wsserver.transports.turned_away import TurnedAway

MOST, SPARE = 2, 1


@pytest.fixture(scope="module")
def context(tmp_path_factory: Any) -> ssl.SSLContext:
    pair = Pair(Path(tmp_path_factory.mktemp("tls")))
    pair.renew()
    context = read_certificate(str(pair.certificate), str(pair.key))
    return Certificate(context).context


@pytest.fixture
def open_seconds() -> float:
    """How long a handshake may take."""
    return 10.0


@pytest.fixture
async def secure(
    rig: Any,
    context: ssl.SSLContext,
    open_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Any]:
    """A listener with TLS and room for two clients and one more."""
    monkeypatch.setattr(listener, "OPEN_SECONDS", open_seconds)
    other = type(rig)(rig.tasks, tls=context)
    await other.start()
    other.listener._endpoint = replace(
        other.listener._endpoint, max_connections=MOST, spare_connections=SPARE
    )
    other.reasons = Counter[str]()
    other.listener._turned_away = TurnedAway(lambda why: other.reasons.update([why]))
    yield other
    await other.stop()
    assert other.listener._live == set()


def client(rig: Any) -> connect:
    url = f"wss://127.0.0.1:{rig.port}/v1/chat"
    return connect(url, ssl=trusting(), compression=None)


async def until_connected(rig: Any, count: int) -> None:
    with anyio.fail_after(10):
        while len(rig.listener._live) != count:
            await anyio.lowlevel.checkpoint()


async def test_frames_pass_both_ways(secure: Any) -> None:
    async with client(secure) as there:
        here = await secure.connection()
        assert here.transport.remote == "127.0.0.1"
        await there.send("up")
        assert await here.transport.receive() == "up"
        here.transport.write([b"down"])
        assert await there.recv() == "down"
    await here.end()
    await until_connected(secure, 0)


async def test_half_open_handshakes_are_counted_as_connections(secure: Any) -> None:
    silent = [await secure.silent() for _ in range(MOST + SPARE)]
    await until_connected(secure, MOST + SPARE)
    for _ in range(3):
        late = await secure.silent()
        assert await late.receive_all() == b"", "nothing can be said to it"
    assert secure.reasons == {"crowd": 3}
    for one in silent[:2]:
        one.close()
    await until_connected(secure, MOST + SPARE - 2)
    silent[2].vanish()
    await until_connected(secure, 0)
    async with client(secure):
        await secure.connection()


@pytest.mark.parametrize("open_seconds", [0.05])
async def test_a_handshake_has_its_time(secure: Any) -> None:
    with capture_logs() as lines:
        slow = [await secure.silent() for _ in range(2)]
        await slow[1].send(b"\x16\x03\x01")
        for one in slow:
            assert await one.receive_all() == b""
        await until_connected(secure, 0)
        secure.listener._turned_away.tell()
    assert secure.reasons == {"handshake": 2}
    told = [line for line in lines if line["log_level"] != "debug"]
    assert [(line["event"], line["clients"]) for line in told] == [
        ("handshakes_dropped", 2)
    ]


async def test_what_is_no_tls_is_dropped_and_not_counted_as_late(secure: Any) -> None:
    plain = await secure.silent()
    await plain.send(secure.request())
    assert b"HTTP" not in await plain.receive_all()
    await until_connected(secure, 0)
    assert secure.reasons == {}


async def test_stopping_drops_who_is_in_the_middle_of_it(secure: Any) -> None:
    silent = [await secure.silent() for _ in range(2)]
    await until_connected(secure, 2)
    with anyio.fail_after(5):
        await secure.listener.stop()
        for one in silent:
            assert await one.receive_all() == b""
    await until_connected(secure, 0)


async def test_those_that_vanish_at_once_leave_nothing(secure: Any) -> None:
    for size in range(20):
        gone = await secure.silent()
        if size % 2:
            await gone.send(b"\x16\x03\x01\x02\x00"[: size % 6])
        gone.vanish()
    async with client(secure) as there:
        assert await there.ping() is not None
    await until_connected(secure, 0)


async def test_without_a_file_for_it_a_client_is_dropped(
    secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("socket.fromfd", full)
    dropped = await secure.silent()
    assert await dropped.receive_all() == b""
    await until_connected(secure, 0)
    monkeypatch.undo()
    async with client(secure):
        await secure.connection()


@pytest.mark.parametrize("open_seconds", [0.5])
async def test_a_defect_in_one_costs_one(
    secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(_: str) -> None:
        raise RuntimeError("not foreseen")

    async with client(secure) as there:
        await secure.connection()
        with monkeypatch.context() as patched, capture_logs() as lines:
            patched.setattr(secure.listener._turned_away, "add", defect)
            slow = await secure.silent()
            assert await slow.receive_all() == b""
            await until_connected(secure, 1)
        assert "handshake_defective" in [line["event"] for line in lines]
        assert await there.ping() is not None
