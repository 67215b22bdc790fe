"""Credentials that take time to check, and principals that may not do everything."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from tests.connections.journal import settle
from tests.connections.wire import SETTINGS, Tokens, connected
from tests.fakes.rig import ALICE, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.principal import ForbiddenError, Principal, check
from wsserver.connections.transport import Handshake
from wsserver.engine.model import Call, Finished
from wsserver.tools.python_tools import PythonTool, PythonTools
from wsserver.tools.registry import Registry

EAGER = msgspec.structs.replace(SETTINGS, hello_seconds=0.05)
AS_ALICE = Handshake(peer="test", token="alice")  # noqa: S106
VIEWER = msgspec.structs.replace(
    ALICE, name="viewer", verbs=frozenset(("open", "ack", "close"))
)


class Slow(Tokens):
    """Knows whose a token is once it is let; obeys what principals may do."""

    def __init__(self, **known: Principal | Exception) -> None:
        super().__init__(**known)
        self.let = anyio.Event()
        self.asking = anyio.Event()

    async def authenticate(self, token: str | None) -> Principal:
        self.asking.set()
        await self.let.wait()
        return await super().authenticate(token)

    def stands(self, principal: Principal) -> bool:
        del principal
        return True

    def authorize(self, principal: Principal, verb: Any, conversation: str) -> None:
        check(principal, verb, conversation)


def quick(**known: Principal) -> Slow:
    tokens = Slow(**known)
    tokens.let.set()
    return tokens


def server(*turns: Any) -> Any:
    return rig(ScriptedProvider(*(turns or (says("Hello"),))))


@asynccontextmanager
async def alice_and(
    other: Handshake, tokens: Tokens, *turns: Any
) -> AsyncGenerator[tuple[Any, Any, Any]]:
    """Alice and another are connected to one server; gives that first."""
    async with (
        server(*turns) as r,
        connected(r, authority=tokens, handshake=AS_ALICE) as alice,
        connected(r, authority=tokens, handshake=other, name="other") as second,
    ):
        yield r, alice, second


async def test_to_believe_a_hello_may_take_longer_than_to_say_it() -> None:
    tokens = Slow(alice=ALICE)
    async with (
        server() as r,
        connected(
            r, authority=tokens, handshake=AS_ALICE, settings=EAGER, hello=False
        ) as client,
    ):
        client.say("hello", protocol=1)
        client.say("open", id="o", conversation="c")
        await tokens.asking.wait()
        await anyio.sleep(0.2)
        assert not client.wire.frames
        tokens.let.set()
        assert (await client.frame())["type"] == "welcome"
        assert (await client.frame("reply"))["ok"]


async def test_a_connection_may_end_while_its_hello_is_not_believed_yet() -> None:
    tokens = Slow(alice=ALICE)
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=AS_ALICE, hello=False) as client,
    ):
        client.say("hello", protocol=1)
        await tokens.asking.wait()
        with anyio.fail_after(1):
            await client.connection.close(1012, "restart")
        assert client.wire.closed == (1012, "restart")


async def test_only_who_was_believed_has_credentials_that_can_be_taken_back() -> None:
    class TakenBack(Slow):
        def stands(self, principal: Principal) -> bool:
            assert principal == ALICE
            return False

    tokens = TakenBack(alice=ALICE)
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=AS_ALICE, hello=False) as client,
    ):
        client.say("hello", protocol=1)
        await tokens.asking.wait()
        client.connection.check_credentials()
        tokens.let.set()
        assert (await client.frame())["type"] == "welcome"
        client.connection.check_credentials()
        await settle()
        assert client.wire.closed == (4401, "unauthorized")


async def test_a_refresh_holds_up_nothing() -> None:
    tokens = quick(alice=ALICE, more=msgspec.structs.replace(ALICE, expires_at=1e12))
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=AS_ALICE) as client,
    ):
        await client.ask("open", conversation="c")
        tokens.let = anyio.Event()
        client.say("refresh", id="r1", token="more")  # noqa: S106
        client.say("refresh", id="r2", token="wrong")  # noqa: S106
        assert (await client.ask("send", conversation="c", content="hi"))["ok"]
        await client.frame("done")
        tokens.let.set()
        assert (await client.frame("reply"))["outcome"] == "refreshed"
        assert (await client.frame("reply"))["error"]["code"] == "unauthorized"


async def test_a_viewer_sees_everything_and_changes_nothing() -> None:
    tokens = quick(alice=ALICE, viewer=VIEWER)
    as_viewer = Handshake(peer="test", token="viewer")  # noqa: S106
    async with alice_and(as_viewer, tokens) as (_r, writer, viewer):
        await writer.ask("open", conversation="c")
        assert (await viewer.ask("open", conversation="c"))["outcome"] == "replay"
        await writer.ask("send", conversation="c", content="hi")
        assert (await viewer.frame("delta"))["text"] == "Hello"
        head = (await viewer.frame("done"))["seq"]
        for verb, members in {
            "configure": {"config": {"model": "m"}},
            "send": {"content": "x"},
            "interrupt": {},
            "tool_result": {"call": "k", "output": 1},
            "fork": {"through": 0},
            "delete": {},
        }.items():
            for conversation in ("c", "unknown"):
                reply = await viewer.ask(verb, conversation=conversation, **members)
                assert reply["error"]["code"] == "forbidden", verb
                assert reply["error"]["retryable"] is False
        viewer.say("tool_progress", conversation="c", call="k")
        assert (await viewer.frame())["code"] == "forbidden"
        viewer.say("ack", conversation="c", seq=head)
        assert (await viewer.ask("close", conversation="c"))["ok"]
        reply = await viewer.ask("open", conversation="c")
        assert reply["head"] == head, "nothing was changed"


async def test_who_may_choose_tools_is_told_which_the_server_runs() -> None:
    async def double(n: int) -> int:
        return 2 * n

    tokens = quick(alice=ALICE, viewer=VIEWER)
    as_viewer = Handshake(peer="test", token="viewer")  # noqa: S106
    async with alice_and(as_viewer, tokens) as (r, writer, viewer):
        opened = await writer.ask("open", conversation="c")
        assert "server_tools" not in opened, "there are none"
        r.services.server_tools = Registry(
            [PythonTools({"double": PythonTool("double", double)})]
        )
        opened = await writer.ask("open", conversation="c")
        assert opened["server_tools"] == ["double"]
        seen = await viewer.ask("open", conversation="c")
        assert seen["ok"]
        assert "server_tools" not in seen
        many = {f"double{n}": PythonTool(f"double{n}", double) for n in range(1_001)}
        r.services.server_tools = Registry([PythonTools(many)])
        opened = await writer.ask("open", conversation="c")
        assert opened["server_tools"] == list(many)[:1_000], "a frame holds no more"


async def test_a_viewer_makes_no_conversation() -> None:
    tokens = quick(viewer=VIEWER)
    as_viewer = Handshake(peer="test", token="viewer")  # noqa: S106
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=as_viewer) as viewer,
    ):
        for members in ({"conversation": "new"}, {}):
            error = (await viewer.ask("open", **members))["error"]
            assert error["code"] == "conversation_not_found"
            assert "do not allow" in error["message"]
        assert r.directory.loaded(ALICE.key("new")) is None


async def test_who_may_make_no_conversation_makes_none_by_a_fork() -> None:
    forks = msgspec.structs.replace(ALICE, verbs=ALICE.verbs - {"create"})
    tokens = quick(alice=ALICE, forks=forks)
    as_other = Handshake(peer="test", token="forks")  # noqa: S106
    async with alice_and(as_other, tokens) as (r, writer, other):
        await writer.ask("open", conversation="c")
        for members in ({"new": "d"}, {}):
            reply = await other.ask("fork", conversation="c", through=0, **members)
            assert reply["error"]["code"] == "forbidden"
        assert r.directory.statistics()[0] == 1
        assert (await writer.ask("fork", conversation="c", through=0))["ok"]


async def test_a_viewer_is_not_asked_to_run_a_tool() -> None:
    look = Call(upstream_id="u", name="look", arguments="{}", valid=True)
    tool = {"name": "look", "parameters": {"type": "object"}}
    tokens = quick(alice=ALICE, viewer=VIEWER)
    as_viewer = Handshake(peer="test", token="viewer")  # noqa: S106
    async with alice_and(
        as_viewer,
        tokens,
        [[Finished(reason="tool_calls", calls=(look,))]],
        says("fine"),
    ) as (_r, writer, viewer):
        await writer.ask("open", conversation="c", config={"tools": [tool]})
        await viewer.ask("open", conversation="c", handles=["look"])
        await writer.ask("send", conversation="c", content="hi")
        await viewer.frame("tool_call")
        await settle()
        types = [msgspec.json.decode(frame)["type"] for frame in viewer.wire.frames]
        assert "tool_request" not in types
        await writer.ask("open", conversation="c", handles=["look"])
        assert (await writer.frame("tool_request"))["name"] == "look"


async def test_who_may_answer_no_more_hands_its_calls_on_and_gets_them_back() -> None:
    look = Call(upstream_id="u", name="look", arguments="{}", valid=True)
    tool = {"name": "look", "parameters": {"type": "object"}}
    tokens = quick(alice=ALICE, reader=msgspec.structs.replace(VIEWER, name="alice"))
    async with alice_and(
        AS_ALICE, tokens, [[Finished(reason="tool_calls", calls=(look,))]], says("fine")
    ) as (_r, one, other):
        await one.ask("open", conversation="c", config={"tools": [tool]})
        await other.ask("open", conversation="c", handles=["look"])
        await one.ask("open", conversation="c", handles=["look"])
        await one.ask("send", conversation="c", content="hi")
        assert not (await one.frame("tool_request"))["redelivered"]
        assert (await one.ask("refresh", token="reader"))["ok"]  # noqa: S106
        assert (await other.frame("tool_request"))["redelivered"]
        await other.ask("close", conversation="c")
        assert (await one.ask("refresh", token="alice"))["ok"]  # noqa: S106
        asked = await one.frame("tool_request")
        assert asked["redelivered"]
        await one.ask("tool_result", conversation="c", call=asked["call"], output=1)
        assert (await one.frame("done"))["status"] == "completed"


async def test_a_refresh_to_less_does_not_leave_open_what_may_not_be_read() -> None:
    sender = msgspec.structs.replace(ALICE, verbs=frozenset(("send",)))
    tokens = quick(alice=ALICE, sender=sender)
    async with alice_and(AS_ALICE, tokens) as (_r, reader, other):
        await reader.ask("open", conversation="c")
        assert (await other.ask("refresh", token="sender"))["ok"]  # noqa: S106
        assert (await other.ask("send", conversation="c", content="hi"))["ok"]
        await reader.frame("done")
        assert (await reader.ask("refresh", token="sender"))["ok"]  # noqa: S106
        assert await reader.ended() == (4403, "forbidden")
        assert other.wire.closed is None


async def test_whom_the_authority_bars_is_turned_away_for_good() -> None:
    tokens = quick()
    tokens.known["barred"] = ForbiddenError("no scope of ours")
    async with server() as r, connected(r, authority=tokens, hello=False) as client:
        client.say("hello", protocol=1, token="barred")  # noqa: S106
        assert (await client.frame())["code"] == "forbidden"
        assert (await client.ended())[0] == 4403


def test_what_the_principal_may_do_is_checked_by_space_and_verb() -> None:
    odd = msgspec.structs.replace(ALICE, space="team/a")
    check(odd, "send", odd.key("c"))
    check(VIEWER, "open", VIEWER.key("c"))
    for principal, verb, key in (
        (VIEWER, "send", "alice/c"),
        (ALICE, "send", "alice/b/c"),
        (msgspec.structs.replace(ALICE, space="team"), "send", odd.key("c")),
        (ALICE, "send", "alice"),
    ):
        with pytest.raises(ForbiddenError):
            check(principal, verb, key)
