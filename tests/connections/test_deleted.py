"""A conversation that is deleted while others have it open."""

from typing import Any

import msgspec
import pytest

from tests.connections.journal import Disk, settle
from tests.connections.wire import LIMITS, SETTINGS, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says

ONE = msgspec.structs.replace(
    SETTINGS, limits=msgspec.structs.replace(LIMITS, conversations=1)
)


def server(**members: Any) -> Any:
    return rig(ScriptedProvider(says("Hello")), **members)


@pytest.mark.parametrize("durable", [False, True])
async def test_who_has_it_open_is_told_once_and_has_room_for_another(
    durable: bool,
) -> None:
    members = {"store": Disk()} if durable else {}
    async with (
        server(**members) as r,
        connected(r, settings=ONE) as client,
        connected(r, name="conn2") as other,
    ):
        await client.ask("open", conversation="c")
        assert (await other.ask("delete", conversation="c"))["outcome"] == "deleted"
        gone = await client.frame("error")
        assert gone["code"] == "conversation_not_found"
        assert gone["message"] == "The conversation c was deleted."
        assert client.connection.lags() == []
        await settle()
        assert not client.wire.frames
        assert (await client.ask("open", conversation="d"))["outcome"] == "created"


async def test_who_deletes_it_is_told_in_the_reply_alone() -> None:
    async with server() as r, connected(r, settings=ONE) as client:
        await client.ask("open", conversation="c")
        client.say("delete", id="x", conversation="c")
        assert (await client.frame())["type"] == "caught_up"
        assert (await client.frame())["outcome"] == "deleted"
        await settle()
        assert not client.wire.frames
        assert client.connection.lags() == []
        assert (await client.ask("open", conversation="c"))["outcome"] == "created"
