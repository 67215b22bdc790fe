"""Heartbeats, slow and dead clients, expiry, as a client lives through them."""

from typing import Any

import anyio
import msgspec
import pytest

from tests.connections.journal import settle
from tests.connections.wire import SETTINGS, Client, Tokens, connected
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from tests.fakes.rig import ALICE, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.connections.transport import Handshake

KEY, NEW_KEY = "key", "new-key"


def server(*texts: str) -> Any:
    return rig(ScriptedProvider(says(*(texts or ("Hello",)))))


async def ended(client: Client) -> tuple[float, int]:
    began = anyio.current_time()
    code, _ = await client.ended()
    return anyio.current_time() - began, code


async def test_heartbeats_name_the_heads_of_open_conversations() -> None:
    async with server() as r, connected(r, wall=lambda: 7.25) as client:
        began = anyio.current_time()
        await client.ask("open", conversation="c")
        await client.ask("open", conversation="d")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("done")
        for n in (1, 2, 3):
            with anyio.fail_after(25):
                while not client.wire.frames:
                    await client.wire.changed()
            assert await client.frame() == {
                "type": "ping",
                "t": 7250,
                "heads": {"c": 5, "d": 0},
            }
            assert anyio.current_time() - began == pytest.approx(20 * n)


async def test_a_silent_client_that_takes_its_heartbeats_lives() -> None:
    async with server() as r, connected(r) as client:
        await anyio.sleep(3600)
        assert not client.wire.over
        assert (await client.ask("open", conversation="c"))["ok"]


async def test_no_heartbeat_before_hello() -> None:
    settings = msgspec.structs.replace(SETTINGS, hello_seconds=50, heartbeat_seconds=1)
    async with server() as r, connected(r, settings=settings, hello=False) as client:
        await anyio.sleep(20)
        assert not client.wire.frames
        assert await ended(client) == (pytest.approx(30), 4408)


async def test_a_client_that_takes_nothing_is_slow() -> None:
    async with server("x" * 200_000) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        client.wire.stall()
        client.say("send", id="s", conversation="c", content="hi")
        seconds, code = await ended(client)
        assert code == 4513
        assert 30 <= seconds <= 38
        # All of it is there for the client that comes back.
        async with connected(r, name="conn2") as again:
            await again.ask("open", conversation="c", after=0)
            assert len((await again.frame("delta"))["text"]) >= 100_000


async def test_a_client_that_takes_a_little_is_not() -> None:
    async with server("x" * 200_000) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        client.wire.stall()
        client.say("send", id="s", conversation="c", content="hi")
        await settle()
        for _ in range(20):
            client.say("ping")
            await anyio.sleep(25)
            if not client.wire.buffered_bytes():
                break
            client.wire.drain(200_000)
        assert not client.wire.over


async def test_one_slow_client_holds_up_no_other() -> None:
    async with (
        server(*["word "] * 100) as r,
        connected(r) as client,
        connected(r, name="conn2") as slow,
    ):
        await client.ask("open", conversation="c")
        await slow.ask("open", conversation="c")
        slow.wire.stall()
        await client.ask("send", conversation="c", content="hi")
        assert (await client.frame("done"))["status"] == "completed"


async def test_where_the_transport_pings_a_client_that_answers_nothing_is_dead() -> (
    None
):
    settings = msgspec.structs.replace(SETTINGS, transport_pings=True)
    async with server() as r, connected(r, settings=settings) as client:
        seconds, code = await ended(client)
        assert code == 4508
        assert 60 <= seconds <= 75


async def test_where_the_transport_pings_a_client_that_answers_lives() -> None:
    settings = msgspec.structs.replace(SETTINGS, transport_pings=True)
    async with server() as r, connected(r, settings=settings) as client:
        for _ in range(100):
            await anyio.sleep(20)
            client.wire.received_bytes += 6
        assert not client.wire.over


@pytest.mark.parametrize("renew", [False, True])
async def test_credentials_that_end(renew: bool) -> None:
    began = anyio.current_time()
    tokens = Tokens(
        **{
            KEY: msgspec.structs.replace(ALICE, expires_at=300.0),
            NEW_KEY: msgspec.structs.replace(ALICE, expires_at=900.0),
        }
    )
    async with (
        server() as r,
        connected(
            r,
            authority=tokens,
            handshake=Handshake(peer="test", token=KEY),
            wall=lambda: anyio.current_time() - began,
        ) as client,
    ):
        await anyio.sleep(239)
        client.wire.frames.clear()
        await anyio.sleep(2)
        assert (await client.frame("auth_expiring"))["in_ms"] == 60_000
        if renew:
            assert (await client.ask("refresh", token=NEW_KEY))["ok"]
            await anyio.sleep(600)
            assert not client.wire.over
            assert (await client.frame("auth_expiring"))["in_ms"] == 60_000
        _, code = await ended(client)
        assert code == 4401
        at = anyio.current_time() - began
        assert at == pytest.approx(900 if renew else 300, abs=0.1)


async def test_credentials_that_end_soon() -> None:
    """Not at the next look that was planned before `hello`."""
    began = anyio.current_time()
    tokens = Tokens(**{KEY: msgspec.structs.replace(ALICE, expires_at=3.0)})
    async with (
        server() as r,
        connected(
            r,
            authority=tokens,
            handshake=Handshake(peer="test", token=KEY),
            wall=lambda: anyio.current_time() - began,
        ) as client,
    ):
        assert (await client.frame("auth_expiring"))["in_ms"] == 3000
        assert await ended(client) == (pytest.approx(3.0), 4401)


async def test_a_client_may_acknowledge_each_frame() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        for _ in range(20):
            for _ in range(800):
                client.say("ack", conversation="c", seq=0)
            await anyio.sleep(1)
        assert (await client.ask("close", conversation="c"))["ok"]
