"""Frames that are handled where they arrive, outside of the task that waits for them."""

from typing import Any

import anyio
import msgspec
import pytest
from structlog.contextvars import get_contextvars

from tests.connections.journal import settle
from tests.connections.wire import Client, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider
from wsserver.connections.dispatch import Dispatch
from wsserver.engine.model import Text


def got(client: Client) -> list[dict[str, Any]]:
    """Returns what the client has got without anything else having run."""
    frames = [msgspec.json.decode(frame) for frame in client.wire.frames]
    client.wire.frames.clear()
    return frames


async def test_a_command_is_answered_in_the_step_in_which_it_arrives() -> None:
    async with rig(ScriptedProvider()) as r, connected(r) as client:
        client.wire.hands_over = True
        await settle()
        client.say("ping", t=7)
        (pong,) = got(client)
        assert (pong["type"], pong["t"]) == ("pong", 7)
        client.say("nonsense", id="n")
        (refused,) = got(client)
        assert (refused["type"], refused["re"]) == ("reply", "n")


async def test_an_interrupt_is_answered_in_that_step_too() -> None:
    async with (
        rig(ScriptedProvider([[Text("one")], anyio.Event()])) as r,
        connected(r) as client,
    ):
        await client.ask("open", conversation="c")
        client.wire.hands_over = True
        client.say("send", id="s", conversation="c", content="hi")
        await client.frame("delta")
        await settle()
        client.wire.frames.clear()
        client.say("interrupt", id="i", conversation="c")
        assert [f["outcome"] for f in got(client) if f["type"] == "reply"] == [
            "interrupted"
        ]
        assert (await client.frame("done"))["status"] == "interrupted"


async def test_who_has_not_said_hello_waits_for_the_task() -> None:
    async with rig(ScriptedProvider()) as r, connected(r, hello=False) as client:
        client.wire.hands_over = True
        await settle()
        client.say("hello", protocol=1)
        assert not got(client)
        assert (await client.frame())["type"] == "welcome"


async def test_its_log_lines_say_which_connection_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    async with rig(ScriptedProvider()) as r, connected(r, name="conn7") as client:
        client.wire.hands_over = True
        await settle()
        monkeypatch.setattr(Dispatch, "take", lambda *_: seen.append(get_contextvars()))
        client.say("ping", t=1)
    assert [bound.get("connection") for bound in seen] == ["conn7"]


async def test_a_defect_there_ends_the_connection_as_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = Dispatch.take

    def once(dispatch: Dispatch, frame: Any) -> None:
        if frame.t == 1:
            raise ZeroDivisionError("secret")
        take(dispatch, frame)

    async with rig(ScriptedProvider()) as r, connected(r) as client:
        client.wire.hands_over = True
        await settle()
        monkeypatch.setattr(Dispatch, "take", once)
        client.say("ping", t=1)
        client.say("ping", t=2)
        assert (await client.ended())[0] == 1011
        assert not [f for f in got(client) if f["type"] == "pong"]
