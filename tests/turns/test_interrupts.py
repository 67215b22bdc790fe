"""Every outcome of an interrupt, in every phase."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.commands import Interrupt
from protocol.content import Tool
from protocol.events import UsageEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import ALICE
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import STREAM, asks, call, settled, talking
from wsserver.engine.deadlines import CLOSE_SECONDS
from wsserver.engine.model import Failure, Reasoning, Text
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Write

BUSY = Failure(
    code="upstream_unavailable",
    message="full",
    retryable=True,
    retry_after_seconds=50.0,
)
TOOLS = [Tool(name="weather")]


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
        turn = await talk.streaming()
        if "seen_seq" in members and members["seen_seq"] < 900:
            members = {**members, "seen_seq": turn + members["seen_seq"]}
        talk.viewer.sent = None if sent is None else turn + sent
        reply = talk.interrupt(**members)
        assert (reply.outcome, reply.turn) == ("interrupted", turn)
        assert reply.keep_through == turn + kept
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        event = await talk.cut()
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
            turn = await talk.streaming()
            command = Interrupt(id="i", conversation="c", keep=keep)  # type: ignore[arg-type]
            applied = talk.conversation.apply(command, ALICE, talk.viewer)
            assert applied.flush_through == (0 if flushed is None else turn + flushed)


async def test_who_has_not_had_what_another_keeps_is_sent_it_before_the_reply() -> None:
    async with talking(STREAM) as talk:
        second, third = talk.join("c2"), talk.join("c3")
        turn = await talk.streaming()
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
        turn = await talk.streaming()
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


async def test_at_the_moment_at_which_the_message_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(says("never")) as talk:
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        talk.send()
        await settled()
        committed = ConversationLog.committed

        def interrupt(log: ConversationLog, write: Write) -> int:
            entries = committed(log, write)
            if talk.conversation.turn is not None:
                talk.interrupt()
            return entries

        monkeypatch.setattr(ConversationLog, "committed", interrupt)
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
        turn = await talk.streaming()
        assert talk.interrupt().outcome == "interrupted"
        await settled()
        assert talk.conversation.turn is not None
        again = talk.interrupt(seen_seq=0)
        assert (again.outcome, again.keep_through) == ("interrupted", turn + 3)
        assert "done" not in await talk.kinds()
        closing.set()
        await talk.done()
        assert (await talk.kinds()).count("cut") == 1


async def test_a_provider_that_does_not_close_holds_up_its_task_and_nothing_else() -> (
    None
):
    never = anyio.Event()

    class Stuck(ScriptedProvider):
        @asynccontextmanager
        async def stream(self, request: Any) -> AsyncGenerator[Any]:
            async with super().stream(request) as stream:
                try:
                    yield stream
                finally:
                    if len(self.requests) == 1:
                        with anyio.CancelScope(shield=True):
                            await never.wait()

    async with talking(provider=Stuck(STREAM, says("b"))) as talk:
        await talk.streaming()
        talk.send("next")
        assert talk.interrupt(send=None).outcome == "interrupted"
        before = anyio.current_time()
        done = await talk.done()
        assert anyio.current_time() - before < 2 * CLOSE_SECONDS
        assert done.status == "completed"
        assert await talk.dones() == ["interrupted/by_client", "completed"]
        assert talk.rig.directory.statistics()[1] == 0
        never.set()


async def test_a_turn_that_is_failing_is_not_called_interrupted() -> None:
    async with talking(STREAM) as talk:
        turn = await talk.streaming()
        assert talk.conversation.turn is not None
        talk.conversation.turn.fail("internal", "it broke")
        reply = talk.interrupt(seen_seq=turn + 1)
        assert reply.outcome == "already_finished"
        assert reply.keep_through == turn + 1
        done = await talk.done()
        assert (done.status, done.text.bytes) == ("failed", len("one "))
        assert (await talk.kinds())[-4:] == ["cut", "usage", "error", "done"]
