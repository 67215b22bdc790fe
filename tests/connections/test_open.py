"""`open`: verdicts, attaching as one step, replacing, limits."""

from typing import Any

import anyio
import msgspec
import pytest

from protocol.commands import Send
from tests.connections.journal import Disk, numbers, settle, text
from tests.connections.wire import SETTINGS, connected
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, Rig, done, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.open import LOCAL
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.reading import read_whole
from wsserver.turns.conversation import Conversation

ANSWER = ["Hello", " ", "world", ", ", "how", " are", " you?"]


def server(**members: Any) -> Any:
    return rig(ScriptedProvider(says(*ANSWER)), **members)


async def known(r: Rig, name: str = "c") -> Conversation:
    """Makes a conversation with one finished turn."""
    key = LOCAL.key(name)
    conversation, _ = await r.directory.create(key, None, LOCAL)
    command = Send(id="s1", conversation=name, content="hi")
    conversation.apply(command, LOCAL, None)
    await done(conversation)
    await settle()
    return conversation


def loaded(r: Rig, name: str = "c") -> Conversation:
    """Returns the conversation that somebody has open."""
    conversation = r.directory.loaded(LOCAL.key(name))
    assert conversation is not None
    return conversation


async def test_a_new_conversation_under_a_name_of_ones_own() -> None:
    async with server() as r, connected(r) as client:
        reply = await client.ask("open", id="o1", conversation="c")
        epoch = reply.pop("epoch")
        assert reply == {
            "type": "reply",
            "re": "o1",
            "ok": True,
            "outcome": "created",
            "conversation": "c",
            "head": 0,
            "oldest": 1,
            "last_ids": [],
        }
        assert await client.frame() == {
            "type": "caught_up",
            "conversation": "c",
            "seq": 0,
        }
        again = await client.ask("open", id="o1", conversation="c")
        assert (again["outcome"], again["epoch"]) == ("replay", epoch)


async def test_a_new_conversation_under_a_name_of_ours() -> None:
    async with server() as r, connected(r) as client:
        first = await client.ask("open")
        second = await client.ask("open")
        assert first["outcome"] == second["outcome"] == "created"
        assert first["conversation"] != second["conversation"]
        assert len(first["conversation"]) >= 16


async def test_of_two_who_make_one_at_once_one_is_told_that_it_did() -> None:
    async with (
        rig(ScriptedProvider([]), FaultyStore()) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        for each in (client, other):
            each.say("open", id="o", conversation="c")
        outcomes = [(await each.frame("reply"))["outcome"] for each in (client, other)]
        assert sorted(outcomes) == ["created", "replay"]


async def test_a_config_is_applied_where_it_is_new_and_ignored_elsewhere() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c", config={"instructions": "be brief"})
        event = await client.frame("config")
        assert (event["seq"], event["config"]) == (1, {"instructions": "be brief"})
        await client.ask("open", conversation="c", config={"instructions": "or not"})
        assert (await client.frame("config"))["config"] == {"instructions": "be brief"}
        reply = await client.ask("open", conversation="d", config={"model": "none"})
        assert reply["error"]["code"] == "bad_model"
        reply = await client.ask("open", conversation="d")
        assert reply["outcome"] == "created", "what was refused has made nothing"


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(
    ("cursor", "outcome", "reason", "first"),
    [
        ({}, "replay", None, 1),
        ({"after": 0}, "replay", None, 1),
        ({"after": 3}, "replay", None, 4),
        ({"after": 11}, "replay", None, None),
        ({"after": 12}, "reset", "seq_ahead", 1),
        ({"after": 3, "epoch": "other"}, "reset", "epoch_changed", 1),
        ({"epoch": "other"}, "replay", None, 1),
    ],
)
async def test_cursors(
    cursor: dict[str, Any],
    outcome: str,
    reason: str | None,
    first: int | None,
    loaded: bool,
) -> None:
    async with server(store=Disk()) as r, connected(r) as client:
        conversation = await known(r)
        assert conversation.log.stored == 11
        if loaded:
            await client.ask("open", conversation="c")
            await client.frame("caught_up")
        else:
            assert r.directory.loaded(LOCAL.key("c")) is None
        reply = await client.ask("open", conversation="c", **cursor)
        assert (reply["outcome"], reply.get("reason")) == (outcome, reason)
        assert (reply["head"], reply["oldest"]) == (11, 1)
        assert reply["last_ids"] == ["s1"]
        assert "turn" not in reply
        frames = []
        while not frames or frames[-1]["type"] != "caught_up":
            frames.append(await client.frame())
        assert numbers(frames) == ([] if first is None else list(range(first, 12)))
        assert frames[-1]["seq"] == 11


async def test_each_epoch_of_its_own_is_accepted() -> None:
    async with server() as r, connected(r) as client:
        conversation = await known(r)
        epoch = conversation.log.epoch
        reply = await client.ask("open", conversation="c", after=4, epoch=epoch)
        assert reply["outcome"] == "replay"


async def test_a_cursor_older_than_what_is_kept() -> None:
    async with server() as r, connected(r) as client:
        conversation = await known(r)
        conversation.log.trim(5)
        reply = await client.ask("open", conversation="c", after=2)
        assert (reply["outcome"], reply["reason"], reply["oldest"]) == (
            "reset",
            "expired",
            6,
        )
        assert (await client.frame())["seq"] >= 6


@pytest.mark.parametrize("after", [-1, 2**53, "3", 1.5, True, []])
async def test_what_is_no_cursor(after: Any) -> None:
    async with server() as r, connected(r) as client:
        reply = await client.ask("open", conversation="c", after=after)
        assert reply["error"]["code"] == "bad_cursor"
        assert reply["error"]["param"] == "$.after"
        assert (await client.ask("open", conversation="c"))["outcome"] == "created"


@pytest.mark.parametrize("cursor", [{"after": 3}, {"after": 0}, {"epoch": "e"}])
async def test_a_cursor_for_what_does_not_exist(cursor: dict[str, Any]) -> None:
    async with server() as r, connected(r) as client:
        reply = await client.ask("open", conversation="c", **cursor)
        assert reply["error"]["code"] == "conversation_not_found"
        assert r.directory.loaded(LOCAL.key("c")) is None


async def test_the_verdict_comes_first_then_the_past_then_the_present() -> None:
    async with server() as r, connected(r) as client:
        await known(r)
        client.wire.stall()
        client.say("open", id="o", conversation="c")
        await settle()
        loaded(r).log.append_text("delta", 2, "live")
        client.wire.flow()
        frames = await client.frames_through(12)
        assert frames[0]["type"] == "reply"
        where = [frame["type"] for frame in frames].index("caught_up")
        assert numbers(frames[1:where]) == list(range(1, 12))
        assert numbers(frames[where + 1 :]) == [12]


async def test_a_running_turn_is_named() -> None:
    gate = anyio.Event()
    script = [*says("Hello")[:1], gate, *says(" world")]
    async with rig(ScriptedProvider(script)) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("delta")
        async with connected(r, name="conn2") as other:
            assert (await other.ask("open", conversation="c"))["turn"] == 2
            frames = await other.frames_through(3)
            assert text(frames) == "Hello"
            gate.set()
            assert (await other.frame("delta"))["text"] == " world"
            assert (await client.frame("delta"))["text"] == " world"


async def test_a_turn_whose_start_is_not_stored_is_not_named() -> None:
    store = FaultyStore()
    async with (
        rig(ScriptedProvider(says("x")), store=store) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        await client.ask("open", conversation="c")
        store.gate = anyio.Event()
        client.say("send", id="s", conversation="c", content="hi")
        await settle()
        reply = await other.ask("open", conversation="c")
        assert loaded(r).running == 2
        assert reply["head"] < 2
        assert "turn" not in reply
        store.gate.set()
        assert (await other.frame("start"))["turn"] == 2


async def test_a_second_open_replaces_the_first() -> None:
    async with server() as r, connected(r) as client:
        await known(r)
        client.wire.stall()
        client.say("open", id="o1", conversation="c", after=5)
        client.say("open", id="o2", conversation="c", after=8, view="frames")
        await settle()
        client.wire.flow()
        frames = [await client.frame("reply"), await client.frame("reply")]
        assert [frame["re"] for frame in frames] == ["o1", "o2"]
        frames = await client.frames_through(11)
        assert numbers(frames) == [9, 10, 11]
        conversation = loaded(r)
        assert len(conversation._viewers) == 1
        conversation.log.append_text("delta", 2, "live")
        assert [f["seq"] for f in await client.frames_through(12)][-1] == 12
        await settle()
        assert not client.wire.frames, "each number comes once"


async def test_opening_again_does_not_leave_a_turn_that_minds() -> None:
    gate = anyio.Event()
    script = [*says("Hello")[:1], gate, *says(" world")]
    async with rig(ScriptedProvider(script)) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi", on_disconnect="cancel")
        await client.frame("delta")
        await client.ask("open", conversation="c", after=3)
        gate.set()
        assert (await client.frame("done"))["status"] == "completed"


async def test_too_many_conversations() -> None:
    limits = msgspec.structs.replace(SETTINGS.limits, conversations=3)
    settings = msgspec.structs.replace(SETTINGS, limits=limits)
    async with server() as r, connected(r, settings=settings) as client:
        await known(r, "c3")
        for n in range(3):
            assert (await client.ask("open", conversation=f"c{n}"))["ok"]
        for name in ("c3", "new"):
            reply = await client.ask("open", conversation=name)
            assert reply["error"]["code"] == "too_many_conversations"
        assert await r.directory.find(LOCAL.key("new")) is None
        assert (await client.ask("open", conversation="c1"))["ok"], "it is open"
        await client.ask("close", conversation="c0")
        assert (await client.ask("open", conversation="c3"))["ok"]


async def test_history_that_is_only_in_the_store() -> None:
    disk = Disk()
    async with server(store=disk) as r:
        await known(r)
    async with server(store=disk) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        frames = await client.frames_through(11)
        assert numbers(frames) == list(range(1, 12))
        assert text(frames) == "".join(ANSWER)


@pytest.mark.parametrize("after", range(11))
async def test_each_suffix_can_be_understood(after: int) -> None:
    async with server() as r, connected(r) as client:
        conversation = await known(r)
        await client.ask("open", conversation="c", after=after)
        frames = await client.frames_through(11)
        assert numbers(frames) == list(range(after + 1, 12))
        want = "".join(
            entry.text()
            for entry in await read_whole(conversation.log, max_bytes=10**6)
            if entry.kind == "delta"
        )
        assert want.endswith(text(frames))


async def test_numbers_by_themselves_and_tool_deltas_on_request() -> None:
    async with server() as r, connected(r) as client:
        conversation = await known(r)
        log: ConversationLog = conversation.log
        for word in ("a", "b", "c"):
            log.append_text("tool_delta", 2, word, b'"call":"k","name":"t",')
        await client.ask("open", conversation="c", view="frames")
        frames = await client.frames_through(14)
        assert [f["type"] for f in frames if "first" in f] == ["skip"]
        assert text(frames) == "".join(ANSWER)
        await client.ask("open", conversation="c", include=["tool_delta"], after=11)
        merged = await client.frame("tool_delta")
        assert (merged["first"], merged["seq"], merged["text"]) == (12, 14, "abc")


async def test_one_conversation_is_read_through_its_own_space_only() -> None:
    async with server() as r, connected(r) as client:
        theirs, _ = await r.directory.create(ALICE.key("c"), None, ALICE)
        theirs.log.append_text("delta", 1, "secret")
        reply = await client.ask("open", conversation="c")
        assert (reply["outcome"], reply["head"]) == ("created", 0)


async def test_nothing_is_left_behind() -> None:
    async with server() as r:
        await known(r)
        async with connected(r) as client:
            await client.ask("open", conversation="c")
            await client.ask("open", conversation="c")
            conversation = loaded(r)
        assert not conversation.log._wakes
        assert conversation._viewers == []
