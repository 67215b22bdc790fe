"""The first frame: versions, credentials, and what comes before them."""

from typing import Any

import msgspec
import pytest
import structlog

from tests.connections.journal import settle
from tests.connections.wire import LIMITS, SETTINGS, Tokens, connected
from tests.fakes.rig import ALICE, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.principal import ForbiddenError, Principal
from wsserver.connections.reader import HELLO_BYTES
from wsserver.connections.transport import Handshake

EAGER = msgspec.structs.replace(SETTINGS, hello_seconds=0.05)
BOB = Principal(name="bob", space="bob")


def server() -> Any:
    return rig(ScriptedProvider(says("Hello")))


async def test_welcome_says_what_the_server_can() -> None:
    async with server() as r, connected(r, hello=False, name="conn7") as client:
        welcome = await client.hello(client={"name": "test", "version": "1"})
        assert welcome == {
            "type": "welcome",
            "protocol": 1,
            "connection": "conn7",
            "heartbeat_ms": 20_000,
            "server": {"name": "wsserver", "version": "0"},
            "models": ["test"],
            "limits": msgspec.to_builtins(LIMITS),
            "features": [],
        }


async def test_no_hello_in_time() -> None:
    async with server() as r, connected(r, settings=EAGER, hello=False) as client:
        client.say("ping")
        assert (await client.frame())["code"] == "hello_required"
        assert (await client.ended())[0] == 4408


async def test_a_command_before_hello_is_answered_and_the_connection_lives() -> None:
    async with server() as r, connected(r, hello=False) as client:
        reply = await client.ask("open", conversation="c")
        assert reply["error"]["code"] == "hello_required"
        client.wire.say(b"{")
        assert (await client.frame())["code"] == "bad_json"
        assert (await client.hello())["type"] == "welcome"
        assert (await client.ask("open", conversation="c"))["ok"]


async def test_a_stranger_is_read_little_of() -> None:
    big = "x" * HELLO_BYTES
    async with server() as r, connected(r, hello=False) as client:
        reply = await client.ask("send", conversation="c", content=big)
        assert reply["error"]["code"] == "too_large"
        assert (await client.hello(later=big))["code"] == "too_large"
        assert (await client.hello())["type"] == "welcome"
        assert (await client.ask("open", conversation="c"))["ok"]
        assert (await client.ask("send", conversation="c", content=big))["ok"]


async def test_hello_twice() -> None:
    async with server() as r, connected(r) as client:
        again = await client.hello()
        assert (again["type"], again["code"]) == ("error", "bad_frame")
        assert (again["param"], "`refresh`" in again["message"]) == ("$.type", True)
        assert (await client.ask("open", conversation="c"))["ok"]


@pytest.mark.parametrize("version", [0, 2, -1])
async def test_another_version(version: int) -> None:
    async with server() as r, connected(r, hello=False) as client:
        client.say("hello", protocol=version)
        assert (await client.frame())["code"] == "unsupported_protocol"
        assert (await client.ended())[0] == 4406


async def test_no_common_subprotocol() -> None:
    handshake = Handshake(peer="test", common_version=False)
    async with server() as r, connected(r, handshake=handshake, hello=False) as client:
        assert (await client.frame())["code"] == "unsupported_protocol"
        assert (await client.ended())[0] == 4406


@pytest.mark.parametrize(
    ("handshake", "hello", "who"),
    [
        ("alice-key", None, "alice"),
        (None, "alice-key", "alice"),
        ("wrong", "alice-key", "alice"),
        ("alice-key", "bob-key", "bob"),
    ],
)
async def test_who_the_client_is(
    handshake: str | None, hello: str | None, who: str
) -> None:
    tokens = Tokens(**{"alice-key": ALICE, "bob-key": BOB})
    shake = Handshake(peer="test", token=handshake)
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=shake, hello=False) as client,
    ):
        members = {} if hello is None else {"token": hello}
        assert (await client.hello(**members))["type"] == "welcome"
        await client.ask("open", conversation="c")
        assert tokens.asked == [("open", f"{who}/c"), ("create", f"{who}/c")]


@pytest.mark.parametrize(
    ("token", "error", "close"),
    [
        (None, "unauthorized", 4401),
        ("wrong", "unauthorized", 4401),
        ("", "unauthorized", 4401),
        ("expired", "unauthorized", 4401),
        ("barred", "forbidden", 4403),
    ],
)
async def test_credentials_that_are_no_good(
    token: str | None, error: str, close: int
) -> None:
    expired = Principal(name="eve", space="eve", expires_at=1.0)
    tokens = Tokens(expired=expired, barred=ForbiddenError("no"))
    async with server() as r, connected(r, authority=tokens, hello=False) as client:
        client.say("hello", protocol=1, token=token)
        assert (await client.frame())["code"] == error
        assert (await client.ended())[0] == close


async def test_what_comes_after_credentials_that_are_no_good_is_not_read() -> None:
    tokens = Tokens(good=ALICE)
    async with server() as r, connected(r, authority=tokens, hello=False) as client:
        for token in ("wrong", "good"):
            client.say("hello", protocol=1, token=token)
        client.say("open", id="o", conversation="c")
        assert (await client.ended())[0] == 4401
        frames = [msgspec.json.decode(frame) for frame in client.wire.frames]
        assert [frame["type"] for frame in frames] == ["error"]
        assert tokens.asked == []


async def test_no_secret_reaches_the_log_or_the_client() -> None:
    tokens = Tokens(good=ALICE)
    shake = Handshake(peer="test", token="SECRET123")  # noqa: S106
    with structlog.testing.capture_logs() as lines:
        async with (
            server() as r,
            connected(r, authority=tokens, handshake=shake, hello=False) as client,
        ):
            client.say("hello", protocol=1, token="SECRET456")  # noqa: S106
            frame = await client.frame()
            code, reason = await client.ended()
    told = f"{frame} {code} {reason} {lines}"
    assert "SECRET" not in told
    assert any(line["event"] == "connection_closed" for line in lines)


async def test_an_authority_that_fails_costs_its_connection_only() -> None:
    tokens = Tokens(broken=ValueError("secret"))
    with structlog.testing.capture_logs() as lines:
        async with (
            server() as r,
            connected(r, authority=tokens, hello=False) as client,
        ):
            client.say("hello", protocol=1, token="broken")  # noqa: S106
            assert (await client.ended())[0] == 1011
            async with connected(r, name="conn2") as other:
                assert (await other.ask("open", conversation="c"))["ok"]
    assert "secret" not in str(lines)
    assert {line["event"] for line in lines} >= {"unforeseen", "connection_closed"}


async def test_who_says_hello_while_the_server_goes_away_is_welcomed_and_told() -> None:
    async with rig(ScriptedProvider([])) as r, connected(r, hello=False) as client:
        client.connection.goaway(deadline_ms=9, reconnect_after_ms=7, reason="restart")
        await settle()
        assert not client.wire.frames, "nothing comes before the welcome"
        assert (await client.hello())["type"] == "welcome"
        goaway = await client.frame()
        assert (goaway["type"], goaway["reconnect_after_ms"]) == ("goaway", 7)
