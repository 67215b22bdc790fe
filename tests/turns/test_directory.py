"""Which conversations are in memory: loaded once, dropped when nobody needs them."""

from typing import Any

import anyio
import pytest

from protocol.commands import Delete, Send
from protocol.content import Config
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import settled, talking, until
from wsserver.engine.model import Finished, Text
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, StoreError
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import CommandError

SLOW: list[Step] = [[Text("a")], 5.0, [Finished(reason="stop")]]
ENDLESS: list[Step] = [[Text("a")], 10_000.0]
KEY = "alice/c"


async def delete(r: Rig, key: str = KEY, id_: str = "d") -> Any:
    command = Delete(id=id_, conversation=key.rpartition("/")[2])
    return (await r.directory.delete(key, command, ALICE)).reply


# Coming and going


async def test_a_conversation_that_nobody_needs_leaves_memory_and_comes_back() -> None:
    async with talking(says("a"), says("b")) as talk:
        talk.configure(instructions="be brief")
        talk.send("one")
        await talk.done()
        before = await talk.log()
        await talk.left()
        assert talk.rig.directory.statistics() == (0, 0)
        talk.conversation = await talk.rig.conversation()
        assert await talk.log() == before
        assert talk.conversation.state.config.instructions == "be brief"
        talk.send("two")
        await talk.done()
        assert talk.said() == [
            "system: be brief", "user: one", "assistant: a", "user: two",
        ]  # fmt: skip


async def test_it_stays_while_a_turn_runs_and_while_something_is_not_stored() -> None:
    async with talking(SLOW) as talk:
        talk.send(on_disconnect="continue")
        await talk.left()
        assert talk.rig.directory.statistics() == (1, 1)
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        await until(lambda: talk.conversation.turn is None)
        await anyio.sleep(10.0)
        assert talk.rig.directory.statistics() == (1, 0)
        gate.set()
        await settled()
        assert talk.rig.directory.statistics() == (0, 0)


async def test_it_stays_while_anybody_watches() -> None:
    async with talking(says("a")) as talk:
        second = talk.join("c2")
        await talk.left()
        assert talk.rig.directory.loaded(KEY) is talk.conversation
        talk.conversation.detach(second)
        assert talk.rig.directory.loaded(KEY) is None


async def test_a_command_from_one_who_does_not_watch_leaves_nothing_in_memory() -> None:
    async with talking(says("a")) as talk:
        await talk.left()
        found = await talk.rig.conversation()
        found.apply(Send(id="x", conversation="c", content="hi"), ALICE, None)
        await until(lambda: found.turn is None)
        await talk.rig.committer.flush()
        await settled()
        assert talk.rig.directory.statistics() == (0, 0)


async def test_what_was_loaded_in_vain_does_not_stay() -> None:
    async with talking(says("a")) as talk:
        others = ["alice/d", "alice/e", "alice/f"]
        for key in others:
            await talk.rig.directory.create(key, None, ALICE)
        await talk.rig.committer.flush()
        await settled()
        assert talk.rig.directory.statistics() == (1, 0)
        for _ in range(3):
            for key in others:
                found = await talk.rig.directory.find(key)
                assert found is not None
                bad = Send(id="x", conversation="c", content="x" * 300_000)
                with pytest.raises(CommandError):
                    found.apply(bad, ALICE, None)
        assert talk.rig.directory.statistics()[0] <= 2


async def test_many_who_look_for_it_at_once_get_the_same_one_whole() -> None:
    class Slow(FaultyStore):
        async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
            await anyio.sleep(1.0)
            return await super().read(key, after, max_bytes)

    async with talking(says("a"), store=Slow()) as talk:
        talk.send()
        await talk.done()
        await talk.left()
        found: list[Conversation | None] = []

        async def find() -> None:
            found.append(await talk.rig.directory.find(KEY))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(find)
            await anyio.sleep(0.5)
            assert talk.rig.directory.loaded(KEY) is None, "it is not whole yet"
        assert len({id(one) for one in found}) == 1
        assert found[0] is not None
        assert found[0].log.tail(2)


async def test_a_load_that_failed_or_was_cancelled_can_be_tried_again() -> None:
    class Slow(FaultyStore):
        async def meta(self, key: str) -> Meta | None:
            await anyio.sleep(1.0)
            return await super().meta(key)

    async with talking(says("a"), store=Slow()) as talk:
        await talk.left()
        with anyio.move_on_after(0.5):
            await talk.rig.directory.find(KEY)
        talk.rig.store.failing_reads = 1  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await talk.rig.directory.find(KEY)
        assert await talk.rig.directory.find(KEY) is not None


async def test_making_one_that_was_made_meanwhile_gives_that_one() -> None:
    async with rig(ScriptedProvider(says("a")), FaultyStore()) as r:
        made: list[tuple[Conversation, bool]] = []

        async def create(instructions: str) -> None:
            config = Config(instructions=instructions)
            made.append(await r.directory.create(KEY, config, ALICE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, "one")
            tasks.start_soon(create, "two")
        (first, created), (second, again) = made
        assert first is second
        assert {created, again} == {True, False}, "one of them made it"
        assert first.log.head == 1
        with pytest.raises(CommandError):
            await r.directory.create("alice/x", Config(model="none"), ALICE)
        assert await r.directory.find("alice/x") is None


# Deleting


async def test_deleting_stops_the_turn_and_leaves_nothing() -> None:
    async with talking(ENDLESS, says("new")) as talk:
        talk.send()
        talk.send("waits")
        await settled()
        assert (await delete(talk.rig)).outcome == "deleted"
        await settled()
        assert talk.provider.open_calls == 0
        assert len(talk.provider.requests) == 1
        assert talk.rig.directory.statistics() == (0, 0)
        assert await talk.rig.store.meta(KEY) is None
        assert await talk.rig.directory.find(KEY) is None
        assert talk.conversation.deleted
        assert (await delete(talk.rig)).duplicate
        with pytest.raises(CommandError) as refused:
            await delete(talk.rig, id_="e")
        assert refused.value.body.code == "conversation_not_found"
        talk.conversation.detach(talk.viewer)
        talk.conversation = await talk.rig.conversation()
        assert talk.conversation.log.head == 0
        assert not talk.send("waits").duplicate
        assert (await talk.done()).status == "completed"


async def test_what_is_being_deleted_is_not_found_once_it_has_gone() -> None:
    async with talking(says("old")) as talk:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        found: list[Conversation | None] = []

        async def find() -> None:
            found.append(await talk.rig.directory.find(KEY))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete, talk.rig)
            await settled()
            tasks.start_soon(find)
            await settled()
            early = [*found]
            gate.set()
        assert (early, found) == ([], [None])


async def test_what_the_store_is_slow_to_let_go_is_begun_anew_after_that() -> None:
    async with talking(says("old"), says("new")) as talk:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        epoch = talk.conversation.log.epoch
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await delete(talk.rig)
        with pytest.raises(StoreError, match="not deleted yet"):
            await talk.rig.directory.find(KEY)
        with pytest.raises(StoreError, match="not deleted yet"):
            await talk.rig.directory.create(KEY, None, ALICE)
        gate.set()
        await talk.rig.committer.flush()
        talk.conversation, _ = await talk.rig.directory.create(KEY, None, ALICE)
        talk.viewer = talk.join("c9")
        talk.send("anew")
        await talk.done()
        assert talk.conversation.log.epoch != epoch
        assert talk.said() == ["user: anew"]
        meta = await talk.rig.store.meta(KEY)
        assert meta is not None
        assert meta.epoch == talk.conversation.log.epoch


async def test_a_client_that_goes_while_it_deletes_does_not_leave_a_ghost() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        with anyio.move_on_after(0.1):
            await delete(talk.rig)
        with pytest.raises(StoreError, match="not deleted yet"):
            await talk.rig.directory.find(KEY)
        gate.set()
        await settled()
        assert await talk.rig.store.meta(KEY) is None
        assert talk.rig.directory.statistics() == (0, 0)


async def test_deleting_while_it_is_being_loaded() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        await talk.left()
        outcomes: list[str | None] = []

        async def find() -> None:
            found = await talk.rig.directory.find(KEY)
            outcomes.append(None if found is None else "found")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(find)
            tasks.start_soon(delete, talk.rig)
            tasks.start_soon(find)
        assert await talk.rig.store.meta(KEY) is None
        assert talk.rig.directory.statistics()[0] == 0


# Draining


async def test_a_drain_lets_turns_end_and_starts_none() -> None:
    async with talking(SLOW, says("b")) as talk:
        talk.send("one")
        talk.send("two")
        await settled()
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.rig.directory.drain, 30.0)
            await settled()
            assert talk.rig.services.draining
            with pytest.raises(CommandError) as refused:
                talk.send("three")
            assert refused.value.body.code == "draining"
        assert 4.0 < anyio.current_time() - began < 6.0
        assert await talk.dones() == ["completed"]
        assert [w.id for w in talk.conversation.state.queue], "it waits for the next"
        talk.join("c2")
        await settled()
        assert len(talk.provider.requests) == 1


async def test_a_drain_ends_what_takes_too_long() -> None:
    async with talking(ENDLESS) as talk:
        other = await talk.another("d")
        talk.send()
        other.send()
        await settled()
        began = anyio.current_time()
        await talk.rig.directory.drain(7.0)
        assert 6.9 < anyio.current_time() - began < 7.5
        for one in (talk, other):
            assert await one.dones() == ["incomplete/server_shutdown"]
            assert (await one.log())[-1].text.bytes == 1
        assert talk.rig.directory.statistics()[1] == 0
        await talk.rig.directory.drain(7.0)


async def test_a_drain_with_nothing_to_do_is_over_at_once() -> None:
    async with talking(says("a")) as talk:
        began = anyio.current_time()
        await talk.rig.directory.drain(30.0)
        assert anyio.current_time() - began < 0.1
