"""Interrupts that come too late, too early, twice, or for another turn."""

import anyio
import pytest

from protocol.commands import Send
from protocol.content import Tool
from protocol.events import CutEvent, MessageEvent, StartEvent, UsageEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import FakeViewer
from tests.fakes.scripted import Step, says
from tests.turns.talk import STREAM, asks, call, kind, settled, talking
from wsserver.auth.principal import Principal
from wsserver.engine.model import Failure, Finished, Text

BUSY = Failure(
    code="upstream_unavailable",
    message="full",
    retryable=True,
    retry_after_seconds=50.0,
)
TOOLS = [Tool(name="weather")]


async def test_after_the_end_the_status_stays_and_the_text_may_still_be_cut() -> None:
    async with talking(says("one ", "two"), says("next")) as talk:
        turn = talk.send().turn or 0
        await talk.done()
        plain = talk.interrupt(turn=turn)
        assert (plain.outcome, plain.turn) == ("already_finished", turn)
        for keep in ("sent", "generated", "none"):
            talk.interrupt(turn=turn, keep=keep, seen_seq=turn)
        assert "cut" not in await talk.kinds()
        reply = talk.interrupt(turn=turn, seen_seq=turn + 1)
        assert (reply.outcome, reply.keep_through) == ("already_finished", turn + 1)
        event = await talk.cut()
        assert event.text.bytes == len("one ")
        later = talk.interrupt(seen_seq=turn + 2, keep="seen")
        assert later.keep_through == turn + 1, "a cut never adds text"
        assert (await talk.dones()) == ["completed"]
        talk.send("next")
        await talk.done()
        assert talk.said() == ["user: hi", "assistant: one ", "user: next"]


async def test_the_id_of_an_older_turn_never_touches_the_one_that_runs() -> None:
    async with talking(says("old"), STREAM) as talk:
        old = talk.send().turn or 0
        await talk.done()
        turn = await talk.streaming()
        assert talk.interrupt(turn=old).outcome == "already_finished"
        assert talk.interrupt(turn=old, seen_seq=old).outcome == "already_finished"
        assert talk.interrupt(turn=turn + 1).outcome == "not_found"
        assert talk.interrupt(turn=turn - 1).outcome == "not_found", "the message"
        await settled()
        assert talk.conversation.running == turn
        assert talk.interrupt(turn=turn).outcome == "interrupted"


@pytest.mark.parametrize("turn", [None, 1, 99])
async def test_where_there_was_no_turn_there_is_none_to_be_found(
    turn: int | None,
) -> None:
    async with talking(says("x")) as talk:
        assert talk.interrupt(turn=turn).outcome == "not_found"


async def test_twice_in_a_row_and_again_and_again() -> None:
    async with talking(STREAM) as talk:
        turn = await talk.streaming()
        first = talk.interrupt(turn=turn, seen_seq=turn + 1)
        second = talk.interrupt(turn=turn)
        assert first.outcome == second.outcome == "interrupted"
        assert first.keep_through == second.keep_through == turn + 1
        await talk.done()
        for _ in range(3):
            assert talk.interrupt(turn=turn).outcome == "already_finished"
        assert (await talk.kinds()).count("cut") == 1
        assert await talk.dones() == ["interrupted/by_client"]


async def test_an_interrupt_by_the_id_of_its_send() -> None:
    async with talking(STREAM) as talk:
        turn = talk.send(id="mine").turn
        await settled()
        assert talk.interrupt(send="mine").turn == turn
        await talk.done()
        assert talk.interrupt(send="mine").outcome == "already_finished"


async def test_a_send_that_waits_is_taken_out_and_never_reaches_a_model() -> None:
    async with talking(
        [[Text("a")], 5.0, [Finished(reason="stop")]], says("c")
    ) as talk:
        talk.send("one")
        talk.send("two", id="two")
        talk.send("three")
        for _ in range(2):
            assert talk.interrupt(send="two").outcome == "dequeued"
        await talk.done()
        assert len(talk.provider.requests) == 2
        assert talk.said() == ["user: one", "assistant: a", "user: three"]
        dones = await talk.dones()
        assert dones == ["completed", "interrupted/by_client", "completed"]
        usages = [e for e in await talk.log() if isinstance(e, UsageEvent)]
        assert [usage.model_calls for usage in usages] == [1, 0, 1]
        assert talk.interrupt(send="two").outcome == "already_finished"


async def test_a_send_that_comes_after_its_interrupt_ends_at_once() -> None:
    async with talking(says("x")) as talk:
        assert talk.interrupt(send="late").outcome == "pre_cancelled"
        await anyio.sleep(59.0)
        reply = talk.send("never mind", id="late")
        assert reply.outcome == "started"
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        start = next(e for e in await talk.log() if isinstance(e, StartEvent))
        assert reply.turn == start.seq
        assert talk.provider.requests == []
        talk.send("again")
        await talk.done()
        assert talk.said() == ["user: again"]


async def test_what_was_taken_back_is_remembered_for_a_minute_for_its_sender() -> None:
    async with talking(says("x")) as talk:
        talk.interrupt(send="late")
        bob = Principal(name="bob", space="alice")
        other = Send(id="late", conversation="c", content="bob's")
        talk.apply(other, by=bob)
        await talk.done()
        assert len(talk.provider.requests) == 1, "bob took nothing back"
        await anyio.sleep(61.0)
        talk.send("mine", id="late")
        assert (await talk.done()).status == "completed"


async def test_what_was_taken_back_interrupts_nothing() -> None:
    async with talking(STREAM, says("b")) as talk:
        await talk.streaming()
        talk.interrupt(send="late")
        assert talk.conversation.running
        assert talk.send(id="late", policy="interrupt").outcome == "queued"
        await settled()
        assert talk.conversation.running
        assert "cut" not in await talk.kinds()


async def test_what_was_taken_back_is_remembered_when_nobody_watches() -> None:
    async with talking(says("x")) as talk:
        talk.conversation.detach(talk.viewer)
        await settled()
        found = await talk.rig.conversation()
        assert found is not talk.conversation, "it had left memory"
        talk.conversation = found
        talk.interrupt(FakeViewer(found), send="late")
        await talk.rig.committer.flush()
        await settled()
        assert talk.rig.directory.statistics() == (0, 0)
        talk.conversation = await talk.rig.conversation()
        talk.send(id="late")
        assert (await talk.done()).reason == "by_client"


async def test_results_that_came_are_kept_and_open_calls_are_cancelled() -> None:
    script: list[Step] = [[Text("Let me see.")], asks(call(0), call(1))]
    async with talking(script, says("next"), tools=TOOLS) as talk:
        turn = talk.send().turn or 0
        await settled()
        assert talk.result(f"call_{turn}.1", {"sky": "clear"}) == "accepted"
        talk.interrupt()
        assert (await talk.done()).reason == "by_client"
        kinds = await talk.kinds()
        assert kinds[-4:] == ["cut", "tool_result", "usage", "done"]
        assert talk.result(f"call_{turn}.0") == "cancelled"
        talk.send("next")
        assert talk.result(f"call_{turn}.0") == "cancelled", "of the last turn"
        await talk.done()
        assert talk.said() == [
            "user: hi",
            "assistant: Let me see.",
            "tool: The call was cancelled before it gave a result.",
            'tool: {"sky":"clear"}',
            "user: next",
        ]
        check_prompt(list(talk.provider.requests[-1].messages))
        assert talk.result(f"call_{turn}.0") == "unknown", "it was before the last"


async def test_only_the_conversation_that_is_named_stops() -> None:
    slow: list[Step] = [[Text("a")], 2.0, [Text("b")], [Finished(reason="stop")]]
    async with talking(slow) as talk:
        others = [await talk.another(name) for name in ("d", "e")]
        for one in (talk, *others):
            one.send()
        await settled()
        talk.interrupt()
        assert (await talk.done()).status == "interrupted"
        for other in others:
            done = await other.done()
            assert (done.status, done.text.bytes) == ("completed", 2)


async def test_no_text_of_a_turn_after_its_done_and_turns_do_not_mix() -> None:
    endless: list[Step] = [step for _ in range(50) for step in ([Text("x")], 0.01)]
    async with talking(*[endless] * 6) as talk:
        for _ in range(5):
            talk.send(policy="interrupt")
            await anyio.sleep(0.05)
        await talk.done()
        running = 0
        for event in await talk.log():
            if isinstance(event, StartEvent):
                assert not running
                running = event.turn
            elif kind(event) == "done":
                assert event.turn == running
                running = 0
            elif not isinstance(event, (MessageEvent, CutEvent)):
                assert event.turn == running
        assert await talk.dones() == ["interrupted/superseded"] * 4 + [
            "incomplete/upstream_truncated"
        ]
        assert talk.provider.open_calls == 0
