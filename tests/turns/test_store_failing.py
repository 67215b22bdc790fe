"""When the log can't be written: turns end, replies wait, nothing is lost."""

import anyio
import pytest

from protocol.content import Tool
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import FakeViewer
from tests.fakes.scripted import Step, says
from tests.turns.talk import Talk, asks, call, settled, talking
from wsserver.engine.model import Finished, Text
from wsserver.log.waiting import until_stored
from wsserver.turns.errors import CommandError

STREAM: list[Step] = [
    *[step for n in range(40) for step in ([Text(f"t{n} ")], 0.1)],
    [Finished(reason="stop")],
]


def store(talk: Talk) -> FaultyStore:
    assert isinstance(talk.rig.store, FaultyStore)
    return talk.rig.store


async def test_a_turn_whose_events_can_not_be_stored_fails_and_says_so() -> None:
    async with talking(STREAM, says("b")) as talk:
        turn = talk.send().turn or 0
        await anyio.sleep(1.0)
        store(talk).failing = True
        await anyio.sleep(5.0)
        log = talk.conversation.log
        assert talk.conversation.turn is None
        assert talk.provider.open_calls == 0
        seen = log.stored
        assert turn < seen < log.head, "nobody sees what is not stored"
        store(talk).failing = False
        await until_stored(log, log.head)
        done = await talk.done()
        assert done.status == "failed"
        error = (await talk.log())[-2]
        assert (error.code, error.retryable) == ("store_unavailable", True)
        assert done.text.bytes >= len("t0 t1 t2 ")
        talk.send("again")
        assert (await talk.done()).status == "completed"


async def test_commands_that_need_the_store_are_refused_and_others_are_not() -> None:
    async with talking(STREAM, says("b")) as talk:
        talk.send()
        await settled()
        store(talk).failing = True
        await anyio.sleep(1.0)
        for command in (talk.send, talk.configure):
            with pytest.raises(CommandError) as refused:
                command()
            assert refused.value.body.code == "store_unavailable"
            assert refused.value.body.retry_after_ms
        with pytest.raises(CommandError):
            await talk.fork(0)
        assert talk.interrupt(turn=2).outcome == "already_finished"
        store(talk).failing = False
        await talk.rig.committer.flush()
        assert talk.configure(instructions="x").outcome == "configured"


async def test_what_waits_is_not_spent_while_the_store_fails() -> None:
    async with talking(STREAM, says("b"), says("c")) as talk:
        talk.send("one")
        await settled()
        talk.send("two")
        talk.send("three")
        await talk.rig.committer.flush()
        store(talk).failing = True
        await anyio.sleep(60.0)
        assert len(talk.provider.requests) == 1
        assert len(talk.conversation.state.queue) == 2
        store(talk).failing = False
        await talk.done()
        assert await talk.dones() == ["failed", "completed", "completed"]


async def test_what_nobody_waits_for_waits_for_somebody() -> None:
    async with talking(STREAM, says("b")) as talk:
        talk.send("one")
        await settled()
        talk.send("two")
        store(talk).failing = True
        await anyio.sleep(1.0)
        talk.conversation.detach(talk.viewer)
        store(talk).failing = False
        await anyio.sleep(60.0)
        assert len(talk.provider.requests) == 1
        assert not talk.rig.directory.in_memory(), "though a message waits in it"
        talk.conversation = await talk.rig.conversation()
        talk.conversation.attach(talk.viewer)
        await talk.done()
        assert talk.said()[-1] == "user: two"


async def test_who_came_while_the_store_failed_is_served_when_it_works() -> None:
    async with talking(STREAM, says("b")) as talk:
        talk.send("one")
        await settled()
        talk.send("two")
        await talk.rig.committer.flush()
        await talk.rig.directory.drain(0.0)
        talk.rig.services.draining = False
        await talk.rig.committer.flush()
        other = await talk.another("d")
        store(talk).failing = True
        other.send("x")
        await anyio.sleep(1.0)
        viewer = FakeViewer(talk.conversation, "c2")
        talk.conversation.attach(viewer)
        await settled()
        assert len(talk.conversation.state.queue) == 1
        store(talk).failing = False
        await talk.done()
        assert talk.said()[-1] == "user: two"


async def test_a_log_that_can_not_be_read_fails_the_turn_not_the_server() -> None:
    async with talking(says("a"), says("b"), says("c"), says("d")) as talk:
        for content in ("one", "two", "three"):
            talk.send(content)
            await talk.done()
            await talk.rig.committer.flush()
        assert talk.conversation.log.read(0, 10**6) is None, "it is not in memory"
        store(talk).failing_reads = 1
        talk.send("four")
        assert (await talk.done()).status == "failed"
        assert (await talk.log())[-2].code == "store_unavailable"
        talk.send("five")
        assert (await talk.done()).status == "completed"
        assert talk.said()[0] == "user: one"


async def test_a_failing_store_while_tools_are_awaited() -> None:
    tools = [Tool(name="weather")]
    async with talking([asks(call(0))], [5.0, *says("b")], tools=tools) as talk:
        turn = talk.send().turn
        await settled()
        store(talk).failing = True
        assert talk.result(f"call_{turn}.0") == "accepted"
        await anyio.sleep(1.0)
        store(talk).failing = False
        await talk.done()
        kinds = await talk.kinds()
        assert kinds.count("tool_result") == 1
        assert kinds[-3:] == ["usage", "error", "done"]


async def test_a_turn_that_ends_while_the_store_hangs_is_seen_when_it_goes_on() -> None:
    async with talking(says("a", "b", "c")) as talk:
        talk.send()
        await settled()
        gate = store(talk).gate = anyio.Event()
        talk.send("two")
        await anyio.sleep(5.0)
        assert talk.conversation.log.stored < talk.conversation.log.head
        gate.set()
        assert (await talk.done()).status == "completed"
        await talk.rig.committer.flush()
        assert talk.conversation.log.stored == talk.conversation.log.head
