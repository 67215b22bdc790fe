"""Which conversations are in memory: loaded once, dropped when nobody needs them."""

from typing import Any

import anyio
import pytest

from protocol.commands import Delete, Send
from protocol.content import Config
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, FakeViewer, Rig, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import EPOCH, Talk, VirtualClock, kind, settled, talking, until
from wsserver.engine.model import Finished, Text
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, StoreError
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import CommandError
from wsserver.turns.retention import Retention

SLOW: list[Step] = [[Text("a")], 5.0, [Finished(reason="stop")]]
ENDLESS: list[Step] = [[Text("a")], 10_000.0]
KEY = "alice/c"


async def delete(r: Rig, key: str = KEY) -> Any:
    command = Delete(id="d", conversation=key.rpartition("/")[2])
    return (await r.directory.delete(key, command, ALICE)).reply


async def left(talk: Talk) -> None:
    """The only viewer leaves, and all is stored."""
    talk.conversation.detach(talk.viewer)
    await talk.rig.committer.flush()
    await settled()


# Coming and going


async def test_a_conversation_that_nobody_needs_leaves_memory_and_comes_back() -> None:
    async with talking(says("a"), says("b")) as talk:
        talk.configure(instructions="be brief")
        talk.send("one")
        await talk.done()
        before = await talk.log()
        await left(talk)
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
        await left(talk)
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
        await left(talk)
        assert talk.rig.directory.loaded(KEY) is talk.conversation
        talk.conversation.detach(second)
        assert talk.rig.directory.loaded(KEY) is None


async def test_a_command_from_one_who_does_not_watch_leaves_nothing_in_memory() -> None:
    async with talking(says("a")) as talk:
        await left(talk)
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
        await left(talk)
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
        await left(talk)
        with anyio.move_on_after(0.5):
            await talk.rig.directory.find(KEY)
        talk.rig.store.failing_reads = 1  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await talk.rig.directory.find(KEY)
        assert await talk.rig.directory.find(KEY) is not None


async def test_making_one_that_was_made_meanwhile_gives_that_one() -> None:
    async with rig(ScriptedProvider(says("a")), FaultyStore()) as r:
        made: list[Conversation] = []

        async def create(instructions: str) -> None:
            config = Config(instructions=instructions)
            made.append(await r.directory.create(KEY, config, ALICE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, "one")
            tasks.start_soon(create, "two")
        assert made[0] is made[1]
        assert made[0].log.head == 1
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
        with pytest.raises(CommandError) as refused:
            await delete(talk.rig)
        assert refused.value.body.code == "conversation_not_found"
        talk.conversation.detach(talk.viewer)
        talk.conversation = await talk.rig.conversation()
        assert talk.conversation.log.head == 0
        assert not talk.send("waits").duplicate
        assert (await talk.done()).status == "completed"


async def test_while_it_is_being_deleted_it_is_gone_and_may_be_begun_anew() -> None:
    async with talking(says("old"), says("new")) as talk:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        epoch = talk.conversation.log.epoch
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete, talk.rig)
            await settled()
            assert await talk.rig.directory.find(KEY) is None
            talk.conversation = await talk.rig.directory.create(KEY, None, ALICE)
            talk.viewer = talk.join("c9")
            talk.send("anew")
            gate.set()
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
        with anyio.move_on_after(1.0):
            await delete(talk.rig)
        assert await talk.rig.directory.find(KEY) is None
        gate.set()
        await settled()
        assert await talk.rig.store.meta(KEY) is None
        assert talk.rig.directory.statistics() == (0, 0)


async def test_deleting_while_it_is_being_loaded() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        await left(talk)
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
            assert talk.rig.directory.draining
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


# Retention


async def test_old_turns_go_whole_and_what_is_left_can_be_used() -> None:
    retention = Retention(seconds=100.0)
    async with talking(says("a"), says("b"), says("c"), retention=retention) as talk:
        talk.send("one")
        await talk.done()
        end = talk.conversation.log.head
        await anyio.sleep(90.0)
        talk.send("two")
        await talk.done()
        await talk.rig.committer.flush()
        assert await talk.rig.directory.retain() == 0
        assert talk.conversation.log.oldest == 1
        await anyio.sleep(20.0)
        await talk.rig.directory.retain()
        await talk.rig.committer.flush()
        log = talk.conversation.log
        assert log.oldest == end + 1
        assert (await talk.log())[0].seq == end + 1
        meta = await talk.rig.store.meta(KEY)
        assert meta is not None
        assert meta.oldest == end + 1
        assert (await talk.rig.store.read(KEY, 0, 10**6))[0].first == end + 1
        talk.send("three")
        await talk.done()
        assert talk.said() == ["user: two", "assistant: b", "user: three"]


async def test_beyond_its_size_the_oldest_turns_go() -> None:
    retention = Retention(bytes=6_000)
    scripts = [says("x" * 3_000)] * 5
    async with talking(*scripts, retention=retention) as talk:
        for _ in range(5):
            talk.send()
            await talk.done()
            await talk.rig.committer.flush()
            await talk.rig.directory.retain()
        await talk.rig.committer.flush()
        turns = [event for event in await talk.log() if kind(event) == "start"]
        assert len(turns) == 2


async def test_a_message_that_waits_or_is_being_answered_is_never_trimmed() -> None:
    retention = Retention(seconds=1.0)
    scripts: list[list[Step]] = [SLOW, SLOW, SLOW, says("d")]
    async with talking(*scripts, retention=retention) as talk:
        talk.send("one")
        await settled()
        talk.send("two")
        talk.send("three")
        for _ in range(20):
            await anyio.sleep(1.0)
            await talk.rig.directory.retain()
        assert talk.said() == ["user: three"] or talk.said()[-1] == "user: three"
        assert len(talk.provider.requests) == 3
        for request in talk.provider.requests:
            assert request.messages[-1]["role"] == "user"


async def test_what_lay_idle_for_too_long_goes_and_what_is_in_use_does_not() -> None:
    retention = Retention(seconds=100.0)
    async with talking(says("a"), retention=retention) as talk:
        for name in ("d", "e"):
            await talk.rig.conversation(name)
        await talk.rig.committer.flush()
        await settled()
        await anyio.sleep(101.0)
        late = await talk.rig.conversation("e")
        late.attach(FakeViewer(late, "c2"))
        assert await talk.rig.directory.retain() == 1
        assert await talk.rig.directory.find("alice/d") is None, "at once"
        await talk.rig.committer.flush()
        assert await talk.rig.store.meta("alice/d") is None
        assert await talk.rig.store.meta("alice/e") is not None
        assert await talk.rig.store.meta(KEY) is not None
        assert await talk.rig.directory.retain() == 0


async def test_what_was_used_while_idle_ones_were_sought_stays() -> None:
    class Slow(FaultyStore):
        async def idle(self, before: float, limit: int) -> list[str]:
            found = await super().idle(before, limit)
            await anyio.sleep(10.0)
            return found

    retention = Retention(seconds=100.0)
    async with talking(says("a"), store=Slow(), retention=retention) as talk:
        await talk.rig.conversation("d")
        await talk.rig.committer.flush()
        await settled()
        await anyio.sleep(200.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.rig.directory.retain)
            await anyio.sleep(1.0)
            found = await talk.rig.conversation("d")
            found.apply(Send(id="x", conversation="d", content="hi"), ALICE, None)
            await until(lambda: found.turn is None)
            await talk.rig.committer.flush()
            await settled()
            assert talk.rig.directory.loaded("alice/d") is None
        await talk.rig.committer.flush()
        assert await talk.rig.store.meta("alice/d") is not None


async def test_what_is_neither_is_trimmed_when_it_is_loaded() -> None:
    store = FaultyStore()
    async with talking(says("a"), says("b"), store=store) as talk:
        talk.send("one")
        await talk.done()
        await anyio.sleep(500.0)
        talk.send("two")
        await talk.done()
        await left(talk)
    clock, retention = VirtualClock(), Retention(seconds=100.0)
    async with rig(ScriptedProvider(), store, clock=clock, retention=retention) as r:
        assert clock.wall() >= EPOCH + 500.0
        found = await r.conversation()
        await r.committer.flush()
        assert found.log.oldest > 1
        assert found.state.last_turn >= found.log.oldest
