"""Every outcome of an interrupt, in every phase."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.commands import Interrupt, Send
from protocol.content import Tool
from protocol.events import CutEvent, MessageEvent, StartEvent, UsageEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import ALICE, FakeViewer
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import Talk, asks, call, kind, settled, talking, until
from wsserver.auth.principal import Principal
from wsserver.engine.model import Failure, Finished, Reasoning, Text

BUSY = Failure(
    code="upstream_unavailable", message="full", retryable=True, retry_after_s=50.0
)
TOOLS = [Tool(name="weather")]
STREAM: list[Step] = [[Text("one ")], [Text("two ")], [Text("three")], 1000.0]


async def cut(talk: Talk) -> CutEvent:
    [found] = [event for event in await talk.log() if isinstance(event, CutEvent)]
    return found


async def streaming(talk: Talk) -> int:
    """Starts a turn, and waits until it has said `one two three`."""
    turn = talk.send().turn
    await until(lambda: talk.conversation.log.stored >= (turn or 0) + 3)
    return turn or 0


@pytest.mark.parametrize(
    ("members", "sent", "kept", "text"),
    [
        ({}, None, 3, "one two three"),
        ({}, 2, 2, "one two "),
        ({}, 0, 0, ""),
        ({"seen_seq": 1}, None, 1, "one "),
        ({"seen_seq": 3}, 2, 2, "one two "),
        ({"seen_seq": 999}, None, 3, "one two three"),
        ({"seen_seq": 0}, None, 0, ""),
        ({"keep": "sent", "seen_seq": 1}, 2, 2, "one two "),
        ({"keep": "seen", "seen_seq": 1}, 2, 1, "one "),
        ({"keep": "generated"}, 0, 3, "one two three"),
        ({"keep": "generated", "seen_seq": 1}, 1, 3, "one two three"),
        ({"keep": "none"}, None, 0, ""),
    ],
)
async def test_what_stays(
    members: dict[str, Any], sent: int | None, kept: int, text: str
) -> None:
    async with talking(STREAM, says("next")) as talk:
        turn = await streaming(talk)
        if "seen_seq" in members and members["seen_seq"] < 900:
            members = {**members, "seen_seq": turn + members["seen_seq"]}
        talk.viewer.sent = None if sent is None else turn + sent
        reply = talk.interrupt(**members)
        assert (reply.outcome, reply.turn) == ("interrupted", turn)
        assert reply.keep_through == turn + kept
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        event = await cut(talk)
        assert (event.keep_through, event.by) == (turn + kept, "alice")
        assert event.text == done.text
        assert done.text.bytes == len(text)
        assert (await talk.kinds())[-3:] == ["cut", "usage", "done"]
        muted = [] if members.get("keep") == "generated" else [turn]
        assert talk.viewer.muted == muted
        talk.send("next")
        await talk.done()
        answer = [f"assistant: {text}"] if text else []
        assert talk.said() == ["user: hi", *answer, "user: next"]


async def test_what_is_to_be_kept_is_sent_before_the_reply() -> None:
    for keep, flushed in [("generated", 3), ("sent", None), ("none", None)]:
        async with talking(STREAM) as talk:
            turn = await streaming(talk)
            command = Interrupt(id="i", conversation="c", keep=keep)  # type: ignore[arg-type]
            applied = talk.conversation.apply(command, ALICE, talk.viewer)
            assert applied.flush_through == (0 if flushed is None else turn + flushed)


async def test_who_has_not_had_what_another_keeps_is_sent_it_before_the_reply() -> None:
    async with talking(STREAM) as talk:
        second, third = talk.join("c2"), talk.join("c3")
        turn = await streaming(talk)
        second.sent, third.sent = turn + 1, turn + 2
        assert talk.interrupt(seen_seq=turn + 2).keep_through == turn + 2
        assert talk.conversation.turn is not None
        command = Interrupt(id="i2", conversation="c")
        applied = talk.conversation.apply(command, ALICE, second)
        assert applied.reply.keep_through == turn + 2
        assert applied.flush_through == turn + 3, "all text there is"
        assert second.muted == []
        command = Interrupt(id="i3", conversation="c")
        applied = talk.conversation.apply(command, ALICE, third)
        assert (applied.flush_through, third.muted) == (0, [turn])


async def test_a_connection_that_does_not_watch_can_not_say_what_was_seen() -> None:
    async with talking(STREAM) as talk:
        turn = await streaming(talk)
        command = Interrupt(id="i", conversation="c", turn=turn)
        reply = talk.apply(command, None)
        assert reply.keep_through == turn + 3


@pytest.mark.parametrize(
    ("script", "phase"),
    [
        ([1000.0], "connecting"),
        ([[Text("a")], 1000.0], "streaming"),
        ([[Reasoning("a")], 1000.0], "streaming"),
        ([[], 1000.0], "waiting_first_token"),
        ([BUSY], "retry_wait"),
        ([asks(call(0))], "waiting_tools"),
        ([asks(call(0)), 1000.0], "waiting_tools"),
    ],
)
async def test_it_works_in_every_phase_and_closes_the_upstream(
    script: list[Step], phase: str
) -> None:
    async with talking(script, says("next"), tools=TOOLS) as talk:
        talk.send()
        await settled()
        turn = talk.conversation.turn
        assert turn is not None
        assert turn.phase == phase
        began = anyio.current_time()
        assert talk.interrupt(turn=turn.turn).outcome == "interrupted"
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        assert done.timing.stop_ms is not None
        await settled()
        assert talk.provider.open_calls == 0
        assert anyio.current_time() - began < 1.0
        assert len(talk.provider.requests) == 1, "it was not called again"
        usage = next(e for e in await talk.log() if isinstance(e, UsageEvent))
        assert usage.estimated
        talk.send("next")
        await talk.done()
        check_prompt(list(talk.provider.requests[-1].messages))


async def test_before_the_message_is_even_stored() -> None:
    async with talking(says("never")) as talk:
        talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        reply = talk.send()
        await settled()
        assert talk.interrupt(turn=reply.turn).outcome == "interrupted"
        await settled()
        assert talk.conversation.turn is None
        assert talk.provider.requests == []
        talk.rig.store.gate.set()  # type: ignore[attr-defined]
        assert (await talk.done()).reason == "by_client"


async def test_at_the_moment_at_which_the_message_is_stored() -> None:
    async with talking(says("never")) as talk:
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        talk.send()
        await settled()
        committed = talk.rig.committer.on_commit

        def interrupt(log: Any) -> None:
            committed(log)
            if talk.conversation.turn is not None:
                talk.interrupt()

        talk.rig.committer.on_commit = interrupt
        with capture_logs() as lines:
            gate.set()
            assert (await talk.done()).reason == "by_client"
        assert [line["event"] for line in lines] == ["turn_done"]
        assert talk.provider.requests == []


async def test_an_upstream_that_is_slow_to_close_does_not_hold_up_the_reply() -> None:
    closing = anyio.Event()

    class SlowToClose(ScriptedProvider):
        @asynccontextmanager
        async def stream(self, request: Any) -> AsyncGenerator[Any]:
            try:
                async with super().stream(request) as stream:
                    yield stream
            finally:
                with anyio.CancelScope(shield=True):
                    await closing.wait()

    async with talking(provider=SlowToClose(STREAM)) as talk:
        turn = await streaming(talk)
        assert talk.interrupt().outcome == "interrupted"
        await settled()
        assert talk.conversation.turn is not None
        again = talk.interrupt(seen_seq=0)
        assert (again.outcome, again.keep_through) == ("interrupted", turn + 3)
        assert "done" not in await talk.kinds()
        closing.set()
        await talk.done()
        assert (await talk.kinds()).count("cut") == 1


async def test_a_turn_that_is_failing_is_not_called_interrupted() -> None:
    async with talking(STREAM) as talk:
        turn = await streaming(talk)
        assert talk.conversation.turn is not None
        talk.conversation.turn.fail("internal", "it broke")
        reply = talk.interrupt(seen_seq=turn + 1)
        assert reply.outcome == "already_finished"
        assert reply.keep_through == turn + 1
        done = await talk.done()
        assert (done.status, done.text.bytes) == ("failed", len("one "))
        assert (await talk.kinds())[-4:] == ["cut", "usage", "error", "done"]


# Races


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
        event = await cut(talk)
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
        turn = await streaming(talk)
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
        turn = await streaming(talk)
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
        await streaming(talk)
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
