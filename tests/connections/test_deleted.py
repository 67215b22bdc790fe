"""A conversation that is deleted while others have it open."""

from typing import Any

import anyio
import msgspec
import pytest

from tests.connections.journal import Disk, settle
from tests.connections.wire import LIMITS, SETTINGS, connected
from tests.fakes.faulty import FaultyStore
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


async def test_nobody_is_told_of_a_deletion_that_a_crash_would_take_back() -> None:
    store = FaultyStore()
    async with (
        server(store=store) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        await client.ask("open", conversation="c")
        await client.frame("caught_up")
        gate = store.gate = anyio.Event()
        client.say("configure", id="k", conversation="c", config={})
        await settle()
        other.say("delete", id="d", conversation="c")
        await settle()
        client.say("send", id="s", conversation="c", content="hi")
        client.say("open", id="o", conversation="c", after=0)
        client.say("fork", id="f", conversation="c", through=0)
        await settle()
        early = [*client.wire.frames, *other.wire.frames]
        gate.set()
        assert early == []
        assert (await other.frame())["outcome"] == "deleted"
        told = [await client.frame() for _ in range(5)]
        assert [frame.get("gone") for frame in told if "re" not in frame] == ["c"]
        refused = {f["re"]: f["error"]["code"] for f in told if "error" in f}
        assert refused == dict.fromkeys("sof", "conversation_not_found")
        assert client.connection.lags() == []


async def test_a_deletion_that_takes_long_is_told_of_when_it_is_stored() -> None:
    store = FaultyStore()
    async with (
        server(store=store) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        for each in (client, other):
            await each.ask("open", conversation="c")
            await each.frame("caught_up")
        gate = store.gate = anyio.Event()
        reply = await other.ask("delete", conversation="c")
        await settle()
        early = [*client.wire.frames]
        client.say("interrupt", id="i", conversation="c")
        again = await client.frame()
        gate.set()
        assert reply["error"]["code"] == "store_unavailable"
        assert early == []
        assert (again["re"], again["error"]["code"]) == ("i", "store_unavailable")
        assert (await client.frame())["gone"] == "c"
        assert not other.wire.frames, "who deletes it knows"
        assert other.connection.lags() == client.connection.lags() == []


async def test_it_is_told_of_when_who_deleted_it_has_left() -> None:
    store = FaultyStore()
    async with server(store=store) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.frame("caught_up")
        async with connected(r, name="conn2") as other:
            gate = store.gate = anyio.Event()
            other.say("delete", id="d", conversation="c")
            await settle()
        await settle()
        early = [*client.wire.frames]
        gate.set()
        assert early == []
        assert (await client.frame())["gone"] == "c"


async def test_a_delete_of_an_epoch_leaves_what_was_made_since() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        before = r.directory.loaded("local/c")
        assert before is not None
        old = before.log.epoch
        await client.ask("delete", conversation="c", epoch=old)
        new = (await client.ask("open", conversation="c"))["epoch"]
        assert new != old
        reply = await client.ask("delete", conversation="c", epoch=old)
        assert (reply["error"]["code"], reply["error"]["param"]) == (
            "bad_frame",
            "$.epoch",
        )
        assert client.connection.lags() == [0], "it is open still"
        reply = await client.ask("delete", conversation="c", epoch=new)
        assert reply["outcome"] == "deleted"
        reply = await client.ask("delete", conversation="c", epoch=new)
        assert reply["error"]["code"] == "conversation_not_found"


async def test_a_delete_that_is_sent_again_leaves_what_was_made_since() -> None:
    async with (
        server() as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        await client.ask("open", conversation="c")
        first = await client.ask("delete", id="d", conversation="c")
        assert (await client.ask("open", conversation="c"))["outcome"] == "created"
        assert (await other.ask("open", conversation="c"))["outcome"] == "replay"
        again = await client.ask("delete", id="d", conversation="c")
        assert again == first | {"duplicate": True}
        for each in (client, other):
            reply = await each.ask("configure", conversation="c", config={})
            assert reply["outcome"] == "configured"
            assert each.connection.lags() == [0], "it is open there"
        assert (await client.ask("delete", id="e", conversation="c"))["ok"]
        reply = await other.ask("configure", conversation="c", config={})
        assert reply["error"]["code"] == "conversation_not_found"


async def test_an_id_that_deleted_deletes_nothing_else() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("delete", id="d", conversation="c")
        epoch = (await client.ask("open", conversation="c"))["epoch"]
        reply = await client.ask("delete", id="d", conversation="c", epoch=epoch)
        assert reply["error"]["code"] == "idempotency_conflict"
        assert client.connection.lags() == [0], "it is open still"


async def test_an_open_that_a_deletion_overtakes_makes_a_new_one() -> None:
    store = FaultyStore()
    async with (
        server(store=store) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        gate = store.gate = anyio.Event()
        client.say("open", id="o", conversation="c")
        await settle()
        before = r.directory.loaded("local/c")
        assert before is not None
        other.say("delete", id="d", conversation="c")
        await settle()
        gate.set()
        assert (await other.frame("reply"))["outcome"] == "deleted"
        made = await client.frame("reply")
        assert (made["outcome"], made["head"]) == ("created", 0)
        assert made["epoch"] != before.log.epoch
        assert client.connection.lags() == [0]
