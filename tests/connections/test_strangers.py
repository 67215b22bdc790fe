"""An id of somebody else's and one that nobody has are alike, to the letter.

And alike in work: the store is asked the same, so that time tells nothing either.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import anyio
import msgspec
import pytest

from protocol.commands import ClientFrame
from tests.connections.journal import settle
from tests.connections.wire import Client, Tokens, connected
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.fakes.strangers import in_own, masked, on_conversation
from wsserver.auth.principal import Principal
from wsserver.connections.transport import Handshake
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, Receipt, Write
from wsserver.stores.memory import MemoryStore

BOB = Principal(name="bob", space="bob")
TOKENS = Tokens(alice=ALICE, bob=BOB)
HERS, NOBODYS, HIS = "alices-0", "nobodys0", "bobs-own"


class Asked(MemoryStore):
    """Notes what it is asked for.

    Attributes:
        asked: Methods and keys.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        self.asked += [f"commit {write.key}" for write in writes]
        await super().commit(writes, now)

    async def meta(self, key: str) -> Meta | None:
        self.asked.append(f"meta {key}")
        return await super().meta(key)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self.asked.append(f"read {key}")
        return await super().read(key, after, max_bytes)

    async def receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        self.asked.append(f"receipts {key}")
        return await super().receipts(key, since, limit)


def test_every_command_and_every_kind_of_id_is_tried() -> None:
    """A verb or an id that is new to the protocol has to be tried here too."""
    tried = [
        *on_conversation("c", epoch="e", turn=3).values(),
        *in_own("own", name="n", turn=3, send="m", call="k").values(),
    ]
    verbs = {
        str(frame.__struct_config__.tag): set(frame.__struct_fields__)
        for frame in get_args(ClientFrame)
        if "conversation" in frame.__struct_fields__
    }
    assert {frame["type"] for frame in tried} == set(verbs)
    ids = {"conversation", "epoch", "after", "turn", "send", "call", "through", "new"}
    for verb, members in verbs.items():
        given = {key for frame in tried if frame["type"] == verb for key in frame}
        assert members & ids <= given, verb


async def until(there: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not there():
            await anyio.sleep(0.001)


async def hers(r: Rig, client: Client) -> dict[str, Any]:
    """Lets Alice have a conversation with a turn; returns what there is to know."""
    opened = await client.ask("open", conversation=HERS)
    sent = await client.ask("send", id="m1", conversation=HERS, content="hello")
    await client.frame("done")
    conversation = r.directory.loaded(ALICE.key(HERS))
    assert conversation is not None
    await until(lambda: conversation.log.clean)
    return {"epoch": opened["epoch"], "turn": sent["turn"]}


async def said(
    client: Client, store: Asked, frame: dict[str, Any], *ids: str
) -> tuple[list[str], list[str]]:
    """Says a frame; returns what came of it, and what the store was asked."""
    await settle()
    client.wire.frames.clear()
    store.asked.clear()
    client.wire.say(msgspec.json.encode({"id": "x1", **frame}))
    await settle()
    frames = [data.decode() for data in client.wire.frames]
    return masked(frames, *ids), masked(store.asked, *ids)


def joined(r: Rig, token: str) -> Any:
    shake = Handshake(peer="test", token=token)
    return connected(r, authority=TOKENS, handshake=shake, name=token)


@pytest.mark.parametrize("loaded", [True, False], ids=["in memory", "in the store"])
@pytest.mark.parametrize("case", on_conversation("c", epoch="e", turn=1))
async def test_a_foreign_conversation_is_an_unknown_one(
    case: str, loaded: bool
) -> None:
    store = Asked()
    async with (
        rig(ScriptedProvider(says("Hello")), store=store) as r,
        joined(r, "bob") as bob,
    ):
        async with joined(r, "alice") as alice:
            known = await hers(r, alice)
            if not loaded:
                await alice.ask("close", conversation=HERS)
                await until(lambda: r.directory.loaded(ALICE.key(HERS)) is None)
            assert (r.directory.loaded(ALICE.key(HERS)) is not None) is loaded
            results = [
                await said(
                    bob,
                    store,
                    on_conversation(conversation, **known)[case],
                    conversation,
                )
                for conversation in (HERS, NOBODYS)
            ]
        assert results[0] == results[1]
        frames, _ = results[0]
        assert bool(frames) is (case != "ack" and case != "tool_progress")
        meant = await r.directory.find(ALICE.key(HERS))
        assert meant is not None, "nothing happened to hers"
        assert meant.log.head == 5


@pytest.mark.parametrize("case", in_own("c", name="n", turn=1, send="s", call="c"))
async def test_foreign_ids_in_ones_own_conversation_are_unknown_ones(case: str) -> None:
    store = Asked()
    results: list[Any] = []
    for name, turn, send, call in (
        (HERS, 3, "m1", "call_3.0"),
        (NOBODYS, 9, "m9", "call_9.0"),
    ):
        async with (
            rig(ScriptedProvider(says("Hello")), store=store) as r,
            joined(r, "alice") as alice,
            joined(r, "bob") as bob,
        ):
            known = await hers(r, alice)
            assert known["turn"] == 3 - 1  # without settings
            await bob.ask("open", conversation=HIS)
            frame = in_own(HIS, name=name, turn=turn, send=send, call=call)[case]
            results.append(await said(bob, store, frame, name, HIS))
        store = Asked()
    assert results[0] == results[1]
    assert bool(results[0][0]) is (case != "a call's progress")


async def test_a_command_id_of_somebody_else_is_ones_own() -> None:
    async with (
        rig(ScriptedProvider(says("Hello"))) as r,
        joined(r, "alice") as alice,
        joined(r, "bob") as bob,
    ):
        await hers(r, alice)
        await bob.ask("open", conversation=HERS)
        reply = await bob.ask("send", id="m1", conversation=HERS, content="other")
        assert reply["outcome"] == "started"
        assert "duplicate" not in reply
