"""What a crash left: every turn ends once, numbers go on, nothing waits in vain."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from protocol.content import Tool
from protocol.events import DoneEvent, MessageEvent, ToolResultEvent, UsageEvent
from tests.engine.story import check_prompt
from tests.fakes.counted import Recorder
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import (
    Talk,
    VirtualClock,
    asks,
    call,
    kind,
    settled,
    talking,
    until,
)
from wsserver.engine.model import Reasoning, Text
from wsserver.engine.moments import wall_of
from wsserver.engine.usage import BYTES_PER_TOKEN
from wsserver.log.store import Store, StoreError
from wsserver.stores.sqlite.store import SqliteStore
from wsserver.turns.errors import CommandError
from wsserver.turns.services import ConversationLimits

TOOLS = [Tool(name="weather")]


@asynccontextmanager
async def restarted(store: Store, *scripts: list[Step]) -> AsyncGenerator[Rig]:
    """A new process on the store that the old one left."""
    async with rig(ScriptedProvider(*scripts), store, clock=VirtualClock()) as r:
        yield r


async def crash(store: Store, script: list[Step], steps: Any = None) -> list[Any]:
    """Runs a turn, and ends the process in the midst of it; returns the log."""
    async with talking(script, store=store, tools=TOOLS) as talk:
        talk.send("one", id="one")
        await settled()
        if steps is not None:
            await steps(talk)
        await talk.rig.committer.flush()
        return await talk.log()


async def opened(r: Rig) -> Talk:
    talk = Talk(r, await r.conversation(), r.services.models.resolve("x").provider)  # type: ignore[union-attr]
    talk.conversation.attach(talk.viewer)
    return talk


@pytest.mark.parametrize(
    ("script", "usage", "text"),
    [
        ([1000.0], (0, 1), ""),
        ([[Text("one ")], [Text("two")], 1000.0], (2, 1), "one two"),
        ([[Reasoning("hm hm hm hm")], 1000.0], (3, 1), ""),
        ([[Text("see ")], asks(call(0), call(1))], (1, 1), "see "),
        ([asks(call(0)), 1000.0], (0, 1), ""),
        ([asks(call(0, "rocket"), call(1))], (0, 1), ""),
    ],
)
async def test_a_turn_that_was_cut_off_ends_as_server_restarted(
    script: list[Step], usage: tuple[int, int], text: str
) -> None:
    store = FaultyStore()
    before = await crash(store, script)
    await anyio.sleep(1)
    async with restarted(store, says("again")) as r:
        metrics = Recorder()
        r.services.metrics = metrics
        assert await r.directory.recover() == 1
        assert await r.directory.recover() == 0
        [[model, counted, code]] = metrics.of("turn_ended")
        assert (model, counted.reason, code) == ("test", "server_restarted", None)
        assert metrics.of("turn_started") == []
        talk = await opened(r)
        log = await talk.log()
        assert log[: len(before)] == before
        assert [event.seq for event in log] == list(range(1, len(log) + 1)) or text
        assert log[-1].seq == talk.conversation.log.head
        done = log[-1]
        assert isinstance(done, DoneEvent)
        assert (done.status, done.reason) == ("incomplete", "server_restarted")
        assert done.text.bytes == len(text)
        asked = next(event for event in log if isinstance(event, MessageEvent))
        lasted_ms = 1000 * (r.services.clock.wall() - wall_of(asked.at))
        assert done.timing.queue_ms < 1
        assert done.timing.total_ms == pytest.approx(lasted_ms, abs=1)
        assert lasted_ms >= 1000
        counted = log[-2]
        assert isinstance(counted, UsageEvent)
        assert (counted.output_tokens, counted.model_calls) == usage
        assert counted.estimated
        asked = '[{"role":"user","content":"one"}]'
        assert counted.input_tokens == len(asked) // BYTES_PER_TOKEN
        calls = [event.call for event in log if kind(event) == "tool_call"]
        settled_calls = [
            event.call
            for event in log
            if isinstance(event, ToolResultEvent) and event.status != "invalid"
        ]
        assert settled_calls == calls
        assert not talk.conversation.state.live
        talk.send("two")
        await talk.done()
        assert (await talk.dones())[-1] == "completed"
        check_prompt(list(talk.provider.requests[-1].messages))
        assert talk.said()[0] == "user: one"
        assert talk.said()[-1] == "user: two"


async def test_what_turns_before_have_asked_and_how_long_they_took_is_not_counted() -> (
    None
):
    store = FaultyStore()
    script: list[Step] = [[Text("b")], 1000.0]
    async with talking(says("a"), script, store=store) as talk:
        talk.send("one")
        await talk.done()
        await anyio.sleep(100.0)
        talk.send("two")
        await until(lambda: len(talk.provider.requests) == 2)
        await settled()
        asked = talk.conversation.state.asked_tokens
        assert (
            asked
            == len(orjson.dumps(talk.provider.requests[1].messages)) // BYTES_PER_TOKEN
        )
        await talk.rig.committer.flush()
    async with restarted(store, says("c")) as r:
        assert await r.directory.recover() == 1
        talk = await opened(r)
        *_, counted, done = await talk.log()
        assert counted.input_tokens == asked
        assert done.timing.total_ms < 50_000
        assert talk.conversation.state.asked_tokens == 0
        talk.send("three")
        await talk.done()
        assert (await talk.log())[-1].timing.total_ms < 50_000
        assert talk.conversation.state.asked_tokens == 0


async def check_compaction(first: Any, again: Callable[[], Awaitable[Any]]) -> None:
    """Cuts a turn off; what is left of it is to be stored like any other's."""
    cut_off: list[Step] = [step for n in range(40) for step in ([Text(f"{n} ")], 0.05)]
    async with talking(says("whole"), [*cut_off, 1000.0], store=first) as talk:
        talk.send("one")
        await talk.done()
        turn = talk.send("two").turn or 0
        await until(lambda: talk.conversation.log.stored == turn + 40)
        left = await first.read("alice/c", turn, 10**6)
        assert len(left) == 40, "while it runs it grows by what comes"
    second = await again()
    async with restarted(second) as r:
        assert await r.directory.recover() == 1
        await r.committer.flush()
        kept = await second.read("alice/c", 0, 10**6)
        texts = [(entry.first, entry.seq) for entry in kept if entry.kind == "delta"]
        assert (len(texts), texts[-1]) == (2, (turn + 1, turn + 40))
        assert kept[-1].seq == turn + 42


async def test_a_turn_that_was_cut_off_is_stored_as_compact_as_any() -> None:
    store = FaultyStore()

    async def again() -> FaultyStore:
        return store

    await check_compaction(store, again)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_in_a_file_too_what_was_cut_off_is_compacted(tmp_path: Path) -> None:
    async def opened_anew() -> SqliteStore:
        for store in stores:
            await store.close()
        stores.append(await anyio.to_thread.run_sync(partial(SqliteStore, path, **how)))
        return stores[-1]

    path, how = tmp_path / "s.db", {"durability": "process", "boot": "b"}
    stores: list[SqliteStore] = []
    await check_compaction(await opened_anew(), opened_anew)
    await stores[-1].close()


async def test_model_calls_count_the_one_that_had_begun_after_the_results() -> None:
    async def answer(talk: Talk) -> None:
        assert talk.result("call_3.0") == "accepted"
        await settled()

    store = FaultyStore()
    await crash(store, [asks(call(0))], answer)
    async with restarted(store) as r:
        await r.directory.recover()
        log = await (await opened(r)).log()
        assert log[-2].model_calls == 2


async def test_a_cut_that_was_stored_counts_also_after_the_crash() -> None:
    class NeverCloses(ScriptedProvider):
        @asynccontextmanager
        async def stream(self, request: Any) -> AsyncGenerator[Any]:
            async with super().stream(request) as stream:
                try:
                    yield stream
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(5.0)

    store = FaultyStore()
    provider = NeverCloses([[Text("one ")], [Text("two")], 1000.0])
    async with talking(provider=provider, store=store) as talk:
        turn = talk.send("q").turn or 0
        await settled()
        assert talk.interrupt(seen_seq=turn + 1).keep_through == turn + 1
        await talk.rig.committer.flush()
        kept = FaultyStore()
        kept._kept = deepcopy(store._kept)
    async with restarted(kept) as r:
        await r.directory.recover()
        log = await (await opened(r)).log()
        assert [kind(event) for event in log[-3:]] == ["cut", "usage", "done"]
        assert log[-1].text.bytes == len("one ")
        assert log[-1].text == log[-3].text


@pytest.mark.parametrize("moment", range(1, 14))
async def test_whenever_it_crashes_each_start_has_one_done(moment: int) -> None:
    """Only the first so many commits are found by the next process."""

    class Dies(FaultyStore):
        async def commit(self, writes: Any, now: float) -> None:
            if len(self.commits) < moment:
                await super().commit(writes, now)

    store = Dies()
    slow: list[Step] = [step for n in range(4) for step in ([Text(f"t{n} ")], 0.01)]
    async with talking(
        [*slow, asks(call(0))], says("b"), store=store, tools=TOOLS
    ) as t:
        t.send("one", id="one")
        await anyio.sleep(0.1)
        t.send("two", id="two")
        t.result("call_3.0")
        await anyio.sleep(0.1)
    healthy = FaultyStore()
    healthy._kept = store._kept
    async with restarted(healthy, says("c")) as r:
        await r.directory.recover()
        talk = await opened(r)
        if "one" in talk.conversation.last_ids("alice"):
            await talk.done()
        log = await talk.log()
        starts = [event.turn for event in log if kind(event) == "start"]
        dones = [event.turn for event in log if kind(event) == "done"]
        assert starts == dones
        messages = [event.seq for event in log if kind(event) == "message"]
        answered = [event.message for event in log if kind(event) == "start"]
        assert answered == messages, "what waited has had its turn"
        assert talk.conversation.last_ids("alice") == ["one", "two"][: len(messages)]
        again = talk.send("one", id="one")
        assert bool(again.duplicate) == bool(messages)
        await talk.done()
        check_prompt(
            list(talk.provider.requests[-1].messages)
        ) if talk.provider.requests else None


async def test_what_waited_runs_when_somebody_opens_it() -> None:
    async def queue(talk: Talk) -> None:
        talk.send("two", id="two")
        talk.send("three", id="three", policy="steer")
        talk.send("four", id="four")
        talk.interrupt(send="four")

    store = FaultyStore()
    await crash(store, [[Text("a")], 1000.0], queue)
    async with restarted(store, says("b"), says("c")) as r:
        await r.directory.recover()
        await r.committer.flush()
        await settled()
        talk = Talk(r, await r.conversation(), r.services.models.resolve("x").provider)  # type: ignore[union-attr]
        assert talk.provider.requests == []
        assert [w.id for w in talk.conversation.state.queue] == ["two", "three", "four"]
        talk.conversation.attach(talk.viewer)
        await talk.done()
        assert await talk.dones() == [
            "incomplete/server_restarted", "completed", "completed",
            "interrupted/by_client",
        ]  # fmt: skip
        assert talk.said() == [
            "user: one", "assistant: a", "user: two", "assistant: b", "user: three",
        ]  # fmt: skip


async def test_a_message_from_one_who_does_not_watch_waits_behind_those() -> None:
    async def queue(talk: Talk) -> None:
        talk.send("two", id="two")

    store = FaultyStore()
    await crash(store, [[Text("a")], 1000.0], queue)
    async with restarted(store, says("b"), says("c")) as r:
        await r.directory.recover()
        talk = Talk(r, await r.conversation(), r.services.models.resolve("x").provider)  # type: ignore[union-attr]
        with pytest.raises(CommandError) as refused:
            talk.send("three", policy="reject")
        assert refused.value.body.code == "busy"
        reply = talk.send("three")
        assert reply.outcome == "queued"
        await talk.done()
        assert talk.said()[-3:] == ["user: two", "assistant: b", "user: three"]


async def test_what_waited_in_many_conversations_keeps_to_the_limit_of_turns() -> None:
    store = FaultyStore()
    slow: list[Step] = [[Text("a")], 5.0, *says("b")]
    async with talking(slow, store=store) as talk:
        talks = [talk, *[await talk.another(name) for name in "de"]]
        for one in talks:
            one.send("one")
            one.send("two")
        await settled()
        await talk.rig.committer.flush()
    limits, clock = ConversationLimits(active_turns=1), VirtualClock()
    provider = ScriptedProvider(slow)
    async with rig(provider, store, limits, clock=clock) as r:
        await r.directory.recover()
        talks: list[Talk] = []
        for name in "cde":
            talks.append(Talk(r, await r.conversation(name), provider))
            talks[-1].conversation.attach(talks[-1].viewer)
        for running in (1, 2, 3):
            await anyio.sleep(1.0)
            assert len(provider.requests) == running
            assert r.directory.statistics()[1] == 1
            await anyio.sleep(4.5)
        for one in talks:
            assert (await one.done()).status == "completed"


async def test_commands_are_known_after_a_restart() -> None:
    store = FaultyStore()
    await crash(store, [[Text("a")], 1000.0])
    async with restarted(store, says("b")) as r:
        await r.directory.recover()
        talk = await opened(r)
        again = talk.send("one", id="one")
        assert (again.duplicate, again.outcome, again.turn) == (True, "started", 3)
        assert talk.interrupt(turn=3).outcome == "already_finished"
        assert talk.interrupt(send="one").outcome == "already_finished"
        assert talk.result("call_3.0") == "unknown"
        await settled()
        assert talk.provider.requests == []


async def test_a_conversation_that_cannot_be_read_leaves_nothing_behind() -> None:
    store = FaultyStore()
    await crash(store, [[Text("a")], 1000.0])
    async with restarted(store, says("b")) as r:
        for reads in (1, 2):
            store.failing_reads = reads
            with pytest.raises(StoreError):
                await r.directory.recover()
            store.failing_reads = 0
            assert r.directory.statistics() == (0, 0)
        assert await r.directory.recover() == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def store() -> SqliteStore:
        return await anyio.to_thread.run_sync(
            lambda: SqliteStore(path, durability="process", boot="b")
        )

    first = await store()
    try:
        before = await crash(first, [[Text("one ")], [Text("two")], asks(call(0))])
    finally:
        await first.close()
    second = await store()
    try:
        async with restarted(second, says("again")) as r:
            assert await r.directory.recover() == 1
            talk = await opened(r)
            log = await talk.log()
            assert log[: len(before)] == before
            assert (log[-1].reason, log[-1].text.bytes) == ("server_restarted", 7)
            talk.send("two")
            await talk.done()
            check_prompt(list(talk.provider.requests[-1].messages))
            await talk.rig.committer.flush()
            assert ALICE.key("c") not in await second.live()
    finally:
        await second.close()
