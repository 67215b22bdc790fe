"""Retention: whole turns go, and what is needed stays."""

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.commands import Send
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, FakeViewer, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import EPOCH, VirtualClock, kind, settled, talking, until
from wsserver.engine.model import Finished, Text
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import StoreError
from wsserver.turns.errors import CommandError
from wsserver.turns.retention import Retention
from wsserver.turns.sweep import EVERY_SECONDS

SLOW: list[Step] = [[Text("a")], 5.0, [Finished(reason="stop")]]
ENDLESS: list[Step] = [[Text("a")], 10_000.0]
KEY = "alice/c"


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
        assert await talk.rig.sweep.once() == 0
        assert talk.conversation.log.oldest == 1
        await anyio.sleep(20.0)
        await talk.rig.sweep.once()
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


async def test_a_fork_of_what_is_not_kept_any_more_is_refused() -> None:
    async with talking(says("a"), retention=Retention(seconds=1.0)) as talk:
        talk.send("one")
        await talk.done()
        end = talk.conversation.log.head
        talk.send("two")
        await talk.done()
        talk.conversation.log.trim(end)
        for through in (1, end):
            with pytest.raises(CommandError) as refused:
                await talk.fork(through)
            assert refused.value.body.param == "$.through"
            assert f"begins with {end + 1}" in refused.value.body.message
        assert (await talk.fork(0)).outcome == "created"
        assert (await talk.fork(end + 1)).outcome == "created"


async def test_beyond_its_size_the_oldest_turns_go() -> None:
    retention = Retention(bytes=6_000)
    scripts = [says("x" * 3_000)] * 5
    async with talking(*scripts, retention=retention) as talk:
        for _ in range(5):
            talk.send()
            await talk.done()
            await talk.rig.committer.flush()
            await talk.rig.sweep.once()
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
            await talk.rig.sweep.once()
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
        assert await talk.rig.sweep.once() == 1
        assert await talk.rig.directory.find("alice/d") is None, "at once"
        await talk.rig.committer.flush()
        assert await talk.rig.store.meta("alice/d") is None
        assert await talk.rig.store.meta("alice/e") is not None
        assert await talk.rig.store.meta(KEY) is not None
        assert await talk.rig.sweep.once() == 0


async def test_all_that_lay_idle_goes_however_many_at_once() -> None:
    async with talking(says("a"), retention=Retention(seconds=100.0)) as talk:
        names = [f"d{number}" for number in range(5)]
        for name in names:
            await talk.rig.conversation(name)
        await talk.rig.committer.flush()
        await settled()
        await anyio.sleep(101.0)
        assert await talk.rig.sweep.once(at_once=2) == 5
        await talk.rig.committer.flush()
        for name in names:
            assert await talk.rig.store.meta(f"alice/{name}") is None


async def test_what_is_open_and_idle_keeps_nothing_else_from_going() -> None:
    async with talking(says("a"), retention=Retention(seconds=100.0)) as talk:
        for name in ("open1", "open2", "open3"):
            conversation = await talk.rig.conversation(name)
            conversation.attach(FakeViewer(conversation, name))
        await talk.rig.committer.flush()
        await anyio.sleep(1.0)
        await talk.rig.conversation("d")
        await talk.rig.committer.flush()
        await settled()
        await anyio.sleep(101.0)
        assert await talk.rig.sweep.once(at_once=2) == 1
        await talk.rig.committer.flush()
        assert await talk.rig.store.meta("alice/d") is None
        assert await talk.rig.store.meta("alice/open1") is not None


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
            tasks.start_soon(talk.rig.sweep.once)
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
        await talk.left()
    clock, retention = VirtualClock(), Retention(seconds=100.0)
    async with rig(ScriptedProvider(), store, clock=clock, retention=retention) as r:
        assert clock.wall() >= EPOCH + 500.0
        found = await r.conversation()
        await r.committer.flush()
        assert found.log.oldest > 1
        assert found.state.last_turn >= found.log.oldest


async def test_a_defect_in_one_conversation_keeps_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    retention = Retention(seconds=100.0)
    async with talking(says("a"), retention=retention) as talk:
        other = await talk.another("d")
        for each in (talk, other):
            each.send()
            await each.done()
        await talk.rig.committer.flush()
        await anyio.sleep(200.0)
        trims, bad = ConversationLog.trim, talk.conversation.log

        def trim(log: ConversationLog, through: int) -> None:
            assert log is not bad, "a defect"
            trims(log, through)

        monkeypatch.setattr(ConversationLog, "trim", trim)
        with capture_logs() as lines:
            await talk.rig.sweep.once()
        assert [(line["event"], line["key"]) for line in lines] == [
            ("conversation_not_trimmed", KEY)
        ]
        assert other.conversation.log.oldest == other.conversation.log.head + 1


async def test_a_store_that_fails_is_swept_the_next_time() -> None:
    class Shy(FaultyStore):
        asked = 0

        async def idle(self, before: float, limit: int) -> list[str]:
            self.asked += 1
            if self.asked == 1:
                raise StoreError("not now")
            return await super().idle(before, limit)

    store, retention = Shy(), Retention(seconds=100.0)
    async with (
        talking(says("a"), store=store, retention=retention) as talk,
        anyio.create_task_group() as tasks,
    ):
        await talk.rig.conversation("d")
        await talk.rig.committer.flush()
        await settled()
        await anyio.sleep(101.0)
        tasks.start_soon(talk.rig.sweep.run)
        await until(lambda: store.asked == 1)
        assert await store.meta("alice/d") is not None
        await anyio.sleep(EVERY_SECONDS)
        await until(lambda: store.asked == 2)
        await talk.rig.committer.flush()
        assert await store.meta("alice/d") is None
        tasks.cancel_scope.cancel()
