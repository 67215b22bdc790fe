"""What a refusal says beside its words: which member was wrong, when to come again."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.connections.wire import Client, Tokens, connected, limited
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.open import LOCAL
from wsserver.auth.principal import Principal
from wsserver.connections.quotas import RETRY_AFTER_MS, Quotas
from wsserver.connections.transport import Handshake
from wsserver.turns.services import ConversationLimits

LIMITS = ConversationLimits(
    queued=1, active_turns=1, content_bytes=1_000, tool_output_bytes=50
)
NOTHING = {"type": "nothing"}


def drains(r: Rig) -> None:
    r.services.draining = True


def fails(r: Rig) -> None:
    r.services.failing = lambda: True


def trims(r: Rig) -> None:
    conversation = r.directory.loaded(LOCAL.key("c"))
    assert conversation is not None
    conversation.log.trim(1)


def nothing(r: Rig) -> None:
    del r


def body(answer: dict[str, Any]) -> tuple[Any, ...]:
    """Returns all that an error says, without its words."""
    error = answer["error"] if answer["type"] == "reply" else answer
    assert error["message"]
    names = ("code", "retryable", "param", "retry_after_ms")
    return tuple(error.get(name) for name in names)


@asynccontextmanager
async def busy() -> AsyncGenerator[tuple[Rig, Client]]:
    """A server and its client, with a turn that runs in `c`; `d` is there, too."""
    script = [*says("Hello")[:1], anyio.Event()]
    async with (
        rig(ScriptedProvider(script), limits=LIMITS) as r,
        connected(r) as client,
    ):
        for name in ("c", "d"):
            await client.ask("open", conversation=name)
        await client.ask("send", id="one", conversation="c", content="hi")
        await client.frame("delta")
        yield r, client


@pytest.mark.parametrize(
    ("type_", "members", "code", "param"),
    [
        ("configure", {"config": {"model": "none"}}, "bad_model", "$.config.model"),
        ("configure", {"config": {"instructions": "x" * 999}}, "too_large", "$.config"),
        (
            "configure",
            {"config": {"tools": [{"name": "a"}, {"name": "a"}]}},
            "bad_frame",
            "$.config.tools[1].name",
        ),
        (
            "configure",
            {
                "config": {
                    "tools": [{"name": "a"}, {"name": "b", "parameters": NOTHING}]
                }
            },
            "bad_frame",
            "$.config.tools[1].parameters",
        ),
        (
            "configure",
            {"config": {"response_schema": NOTHING}},
            "bad_frame",
            "$.config.response_schema",
        ),
        ("send", {"content": "x" * 999}, "too_large", "$.content"),
        ("send", {"id": "one", "content": "ho"}, "idempotency_conflict", "$.id"),
        ("tool_result", {"call": "k", "output": "x" * 49}, "too_large", "$.output"),
        ("fork", {"through": 999}, "bad_frame", "$.through"),
        ("fork", {"through": 1, "new": "d"}, "bad_frame", "$.new"),
        ("open", {"after": -1}, "bad_cursor", "$.after"),
        (
            "open",
            {"conversation": "x", "after": 3},
            "conversation_not_found",
            "$.conversation",
        ),
        (
            "delete",
            {"conversation": "x"},
            "conversation_not_found",
            "$.conversation",
        ),
    ],
)
async def test_what_can_not_be_right_names_the_member_that_is_wrong(
    type_: str, members: dict[str, Any], code: str, param: str
) -> None:
    async with busy() as (_, client):
        answer = await client.ask(type_, **{"conversation": "c", **members})
        assert body(answer) == (code, False, param, None)


async def test_a_number_that_is_no_longer_kept_is_named_too() -> None:
    async with rig(ScriptedProvider(says("Hello"))) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("done")
        trims(r)
        answer = await client.ask("fork", conversation="c", through=1)
        assert body(answer) == ("bad_frame", False, "$.through", None)
        assert "the log begins with 2" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("prepare", "members", "code"),
    [
        (nothing, {"conversation": "d"}, "too_many_turns"),
        (nothing, {}, "queue_full"),
        (drains, {}, "draining"),
        (fails, {}, "store_unavailable"),
    ],
)
async def test_what_may_be_right_later_says_when(
    prepare: Callable[[Rig], None], members: dict[str, Any], code: str
) -> None:
    async with busy() as (r, client):
        queued = await client.ask("send", id="two", conversation="c", content="hi")
        assert queued["outcome"] == "queued"
        prepare(r)
        send = {"id": "three", "conversation": "c", "content": "hi", **members}
        assert body(await client.ask("send", **send)) == (code, True, None, 1000)


async def test_who_did_not_want_to_wait_is_not_told_to() -> None:
    async with busy() as (_, client):
        answer = await client.ask(
            "send", conversation="c", content="hi", policy="reject"
        )
        assert body(answer) == ("busy", True, None, None)


async def test_what_is_wrong_with_who_asks() -> None:
    tokens = Tokens(alice=ALICE, bob=Principal(name="bob", space="bob"))
    one = limited(principal_connections=1)
    quotas = Quotas(one)
    shake = Handshake(peer="test", token="alice")  # noqa: S106
    async with (
        rig(ScriptedProvider([])) as r,
        connected(r, authority=tokens, handshake=shake, quotas=quotas) as client,
        connected(
            r, authority=tokens, handshake=shake, quotas=quotas, hello=False, name="b"
        ) as second,
        connected(r, hello=False, name="c") as old,
    ):
        client.say("hello", protocol=1)
        answer = await client.frame("error")
        assert body(answer) == ("bad_frame", False, "$.type", None)
        answer = await client.ask("refresh", token="bob")  # noqa: S106
        assert body(answer) == ("forbidden", False, "$.token", None)
        answer = await client.ask("refresh", token="eve")  # noqa: S106
        assert body(answer) == ("unauthorized", False, None, None)
        assert body(await second.hello()) == (
            "rate_limited",
            True,
            None,
            RETRY_AFTER_MS,
        )
        old.say("hello", protocol=2)
        answer = await old.frame()
        assert body(answer) == ("unsupported_protocol", False, "$.protocol", None)
