"""Forks: the log up to the end of a turn, in a conversation of its own."""

from functools import partial
from typing import Any

import anyio
import pytest

from protocol.commands import Delete
from protocol.content import Config, Tool
from protocol.events import DoneEvent, MessageEvent
from tests.engine.story import check_prompt
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, FakeViewer, events
from tests.fakes.scripted import Step, says
from tests.turns.talk import Talk, asks, call, kind, settled, talking, until
from wsserver.engine.model import Finished, Text
from wsserver.log.store import Meta
from wsserver.turns.errors import CommandError

SLOW: list[Step] = [[Text("a")], 5.0, [Finished(reason="stop")]]


async def forked(talk: Talk, through: int, **members: Any) -> Talk:
    """Forks, and opens the fork."""
    reply = await talk.fork(through, **members)
    assert (reply.ok, reply.outcome) == (True, "created")
    made = await talk.rig.conversation(reply.conversation or "")
    fork = Talk(talk.rig, made, talk.provider)
    made.attach(fork.viewer)
    return fork


async def test_every_number_leads_to_the_end_of_its_turn() -> None:
    async with talking(SLOW, says("b"), says("c")) as talk:
        talk.send("one")
        await settled()
        talk.send("two")  # waits inside of the first turn
        await talk.done()
        talk.configure(instructions="be brief")
        log = await talk.log()
        head = talk.conversation.log.head
        ends = [event.seq for event in log if isinstance(event, DoneEvent)]
        turns = [
            (event.turn, event.seq) for event in log if isinstance(event, DoneEvent)
        ]
        for through in range(head + 1):
            inside = [end for turn, end in turns if turn <= through <= end]
            wanted = inside[0] if inside else through
            fork = await forked(talk, through)
            copied = await events(fork.conversation)
            assert [kind(e) for e in copied if e.seq <= wanted] == [
                kind(e) for e in log if e.seq <= wanted
            ]
            assert [e.seq for e in copied if isinstance(e, DoneEvent)] == [
                end for end in ends if end <= wanted
            ]
            assert all(
                e.conversation == fork.conversation.log.conversation for e in copied
            )
        for through in (head + 1, 2**53 - 1):
            with pytest.raises(CommandError) as refused:
                await talk.fork(through)
            assert refused.value.body.param == "$.through"


async def test_a_turn_that_runs_can_not_be_taken_along() -> None:
    async with talking(says("a"), SLOW) as talk:
        talk.send("one")
        await talk.done()
        end = talk.conversation.log.head
        turn = talk.send("two").turn or 0
        await settled()
        for through in (turn, talk.conversation.log.head):
            with pytest.raises(CommandError) as refused:
                await talk.fork(through)
            assert refused.value.body.code == "bad_frame"
        for through in (end, end + 1):
            fork = await forked(talk, through)
            assert fork.conversation.log.head == through


async def test_going_on_in_the_fork_leaves_the_source_as_it_was() -> None:
    async with talking(says("a"), says("b"), says("edited")) as talk:
        talk.send("one")
        await talk.done()
        end = talk.conversation.log.head
        talk.send("two")
        await talk.done()
        before = await talk.log()
        fork = await forked(talk, end, new="edit")
        assert fork.conversation.log.conversation == "edit"
        assert fork.conversation.log.epoch != talk.conversation.log.epoch
        reply = fork.send("two, edited")
        assert reply.seq == end + 1
        await fork.done()
        assert fork.said() == ["user: one", "assistant: a", "user: two, edited"]
        assert await talk.log() == before


async def test_settings_are_those_of_the_place_and_always_there() -> None:
    async with talking(says("a"), says("b")) as talk:
        talk.send("one")
        await talk.done()
        first = talk.conversation.log.head
        talk.configure(instructions="early")
        talk.send("two")
        await talk.done()
        second = talk.conversation.log.head
        talk.configure(instructions="late")
        for through, wanted in [(0, "late"), (first, "late"), (second, "early")]:
            fork = await forked(talk, through)
            assert fork.conversation.state.config.instructions == wanted
            told = [e.config for e in await fork.log() if kind(e) == "config"]
            assert told == [fork.conversation.state.config]
            assert (await fork.log())[-1].seq == fork.conversation.log.head


async def test_settings_that_were_taken_back_are_not_in_a_fork() -> None:
    async with talking(says("a")) as talk:
        talk.configure(instructions="early")
        talk.configure(instructions=None)
        talk.send("one")
        await talk.done()
        through = talk.conversation.log.head
        talk.configure(instructions="late")
        fork = await forked(talk, through)
        assert fork.conversation.state.config == Config()
        assert fork.conversation.log.head == through


async def test_a_cut_goes_along_wherever_in_the_log_it_came() -> None:
    async with talking(says("one ", "two"), SLOW, says("next")) as talk:
        turn = talk.send("q").turn or 0
        await talk.done()
        end = talk.conversation.log.head
        talk.send("slow")
        await settled()
        talk.interrupt(turn=turn, seen_seq=turn + 1)  # inside of the second turn
        talk.interrupt()
        await talk.done()
        for through in (turn, end):
            fork = await forked(talk, through)
            log = await fork.log()
            assert [kind(e) for e in log[-2:]] == ["done", "cut"]
            assert (log[-1].seq, log[-1].turn) == (end + 1, turn)
            fork.send("go on")
            await fork.done()
            assert fork.said() == ["user: q", "assistant: one ", "user: go on"]


async def test_what_wanted_to_join_a_turn_and_never_did_is_left_behind() -> None:
    scripts: list[list[Step]] = [[asks(call(0))], SLOW, SLOW]
    async with talking(
        *scripts, says("b"), says("c"), tools=[Tool(name="weather")]
    ) as talk:
        turn = talk.send("one").turn or 0
        await settled()
        talk.send("joins", policy="steer")
        talk.send("is taken back", id="back", policy="steer")
        talk.interrupt(send="back")
        talk.result(f"call_{turn}.0")
        await settled()
        talk.send("comes too late", policy="steer")
        talk.send("too", policy="steer")
        await until(lambda: talk.conversation.running not in (turn, 0))
        for _ in range(2):  # while some of them wait, and afterwards
            fork = await forked(talk, turn)
            fork.send("two")
            await fork.done()
            assert fork.said() == [
                "user: one", "assistant: ", "tool: done", "user: joins",
                "assistant: a", "user: two",
            ]  # fmt: skip
            await talk.done()


async def test_a_fork_is_stored_whole_and_can_be_loaded() -> None:
    tools = [Tool(name="weather")]
    script: list[Step] = [[Text("x" * 1000)] * 30, asks(call(0))]
    async with talking(script, says("b"), says("c"), tools=tools) as talk:
        turn = talk.send("one").turn
        await settled()
        talk.result(f"call_{turn}.0")
        await talk.done()
        reply = await talk.fork(turn or 0, new="d")
        assert reply.outcome == "created"
        await talk.rig.committer.flush()
        await settled()
        assert talk.rig.directory.loaded("alice/d") is None, "nobody has opened it"
        fork = Talk(talk.rig, await talk.rig.conversation("d"), talk.provider)
        assert [e.seq for e in await fork.log()][-1] == fork.conversation.log.head
        assert fork.conversation.last_ids("alice") == talk.conversation.last_ids(
            "alice"
        )
        fork.send("two")
        await fork.done()
        check_prompt(list(talk.provider.requests[-1].messages))
        assert (await fork.kinds()).count("done") == 2


async def test_an_id_in_use_is_refused_and_so_is_its_own() -> None:
    async with talking(says("a")) as talk:
        await talk.rig.conversation("taken")
        for name in ("taken", "c"):
            with pytest.raises(CommandError) as refused:
                await talk.fork(0, new=name)
            assert refused.value.body.param == "$.new"


async def test_messages_that_wait_stay_behind() -> None:
    async with talking(SLOW, says("b")) as talk:
        talk.send("one")
        await settled()
        talk.send("waits")
        await until(lambda: talk.conversation.state.last_turn > 3)
        first = next(e for e in await talk.log() if isinstance(e, DoneEvent)).seq
        await talk.done()
        fork = await forked(talk, first)
        await settled()
        assert fork.conversation.state.queue == []
        messages = [e for e in await fork.log() if isinstance(e, MessageEvent)]
        assert [m.content for m in messages] == ["one", "waits"]
        fork.send("again")
        await fork.done()
        assert fork.said() == ["user: one", "assistant: a", "user: again"]


async def test_a_source_that_is_deleted_meanwhile_is_not_found() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        refused: list[str] = []

        async def fork() -> None:
            try:
                await talk.fork(1)
            except CommandError as error:
                refused.append(error.body.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fork)
            await anyio.lowlevel.checkpoint()
            command = Delete(id="x", conversation="c")
            await talk.rig.directory.delete("alice/c", command, ALICE)
        assert refused in (["conversation_not_found"], [])
        assert await talk.rig.directory.find("alice/c") is None


async def test_a_source_that_nobody_watches_stays_while_it_is_forked() -> None:
    class Slow(FaultyStore):
        async def meta(self, key: str) -> Meta | None:
            await anyio.sleep(100.0 if key == "alice/new" else 0.0)
            return await super().meta(key)

    async with talking(says("a"), store=Slow()) as talk:
        await talk.another("d")
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        talk.conversation.detach(talk.viewer)
        await settled()
        source = talk.conversation = await talk.rig.conversation()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(talk.fork, 1, new="new"))
            await settled()
            for name in ("x", "y"):
                await talk.rig.directory.create(f"alice/{name}", None, ALICE)
                await talk.rig.committer.flush()
                await settled()
                await talk.rig.directory.find(f"alice/{name}")
                assert await talk.rig.directory.find("alice/c") is source
        await talk.rig.committer.flush()
        assert not talk.rig.committer.failing


async def test_a_viewer_of_the_source_does_not_see_the_fork() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        fork = await forked(talk, 1)
        viewer = FakeViewer(fork.conversation, "c9", "weather")
        fork.conversation.attach(viewer)
        fork.send("x")
        await fork.done()
        assert talk.conversation.log.head < fork.conversation.log.head
