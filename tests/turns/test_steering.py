"""A message that steers joins the running turn at its next model call."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from protocol.content import Tool
from protocol.events import MessageEvent
from tests.engine.story import check_prompt
from tests.fakes.faulty import FaultyStore
from tests.fakes.scripted import Step, says
from tests.turns.talk import asks, call, settled, talking, until
from wsserver.engine.model import Failure, Finished, Text
from wsserver.engine.prompt import PromptFold
from wsserver.log.entry import Entry
from wsserver.turns import request

TOOLS = [Tool(name="weather")]
SLOW: list[Step] = [[Text("first")], 5.0, [Finished(reason="stop")]]
ENDLESS: list[Step] = [[Text("first")], 1000.0]


async def test_steering_joins_at_the_next_model_call() -> None:
    scripts = [[[Text("Let me see.")], asks(call(0))], says("It is cold.")]
    async with talking(*scripts, tools=TOOLS) as talk:
        turn = talk.send("weather?").turn
        await settled()
        reply = talk.send("in Rome", policy="steer")
        assert (reply.outcome, reply.turn) == ("steering", None)
        await settled()
        assert len(talk.provider.requests) == 1
        talk.result(f"call_{turn}.0", "5 degrees")
        await talk.done()
        assert talk.said() == [
            "user: weather?", "assistant: Let me see.", "tool: 5 degrees",
            "user: in Rome",
        ]  # fmt: skip
        steering = [e for e in await talk.log() if isinstance(e, MessageEvent)][1]
        assert steering.steers == turn
        assert len(await talk.dones()) == 1, "it has no turn of its own"
        assert not talk.conversation._schedule._senders, "nobody asks for it any more"
        talk.send("thanks")
        await talk.done()
        assert talk.said()[3:] == [
            "user: in Rome", "assistant: It is cold.", "user: thanks",
        ]  # fmt: skip


async def test_steering_a_turn_that_ends_first_is_the_next_message() -> None:
    async with talking(SLOW, says("b")) as talk:
        talk.send("one")
        await settled()
        assert talk.send("two", policy="steer").outcome == "steering"
        await talk.done()
        assert talk.said() == ["user: one", "assistant: first", "user: two"]
        assert await talk.dones() == ["completed", "completed"]


async def test_steering_an_interrupted_turn_is_the_next_message() -> None:
    async with talking([asks(call(0))], says("b"), tools=TOOLS) as talk:
        talk.send("one")
        await settled()
        talk.send("two", policy="steer")
        talk.interrupt()
        await talk.done()
        assert talk.said()[-1] == "user: two"
        assert talk.said().count("user: two") == 1
        check_prompt(list(talk.provider.requests[-1].messages))


async def test_steering_does_not_join_a_turn_that_is_stopped_as_it_is_stored() -> None:
    async with talking([asks(call(0))], says("b"), tools=TOOLS) as talk:
        turn = talk.send("one").turn
        await settled()
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        message = talk.send("two", policy="steer").seq or 0
        talk.result(f"call_{turn}.0")
        await settled()
        log, outcomes = talk.conversation.log, list[str | None]()

        def stop() -> None:
            if log.stored >= message and not outcomes:
                outcomes.append(talk.interrupt().outcome)

        log.subscribe(stop)  # told after who waits to ask the model
        gate.set()
        await talk.done()
        assert outcomes == ["interrupted"]
        assert talk.said()[-1] == "user: two"
        assert await talk.dones() == ["interrupted/by_client", "completed"]


async def test_steering_is_not_lost_when_the_model_call_is_made_again() -> None:
    busy = Failure(code="upstream_unavailable", message="", retryable=True)
    async with talking([asks(call(0))], [busy], says("b"), tools=TOOLS) as talk:
        turn = talk.send("one").turn
        await settled()
        talk.send("two", policy="steer")
        talk.result(f"call_{turn}.0")
        await talk.done()
        assert len(talk.provider.requests) == 3
        assert talk.said(1)[-1] == talk.said(2)[-1] == "user: two"


async def test_what_joined_as_a_call_was_made_again_stands_before_its_answer() -> None:
    members: Any = {"code": "upstream_rate_limited", "retry_after_seconds": 5.0}
    busy = Failure(message="", retryable=True, **members)
    async with talking([busy], says("b"), says("c")) as talk:
        talk.send("one")
        await anyio.sleep(1.0)
        talk.send("two", policy="steer")
        await talk.done()
        assert talk.said() == ["user: one", "user: two"]
        talk.send("three")
        await talk.done()
        assert talk.said() == [
            "user: one", "user: two", "assistant: b", "user: three",
        ]  # fmt: skip


async def test_steering_that_was_taken_back_never_joins() -> None:
    async with talking([asks(call(0))], says("b"), tools=TOOLS) as talk:
        turn = talk.send("one").turn
        await settled()
        talk.send("two", id="two", policy="steer")
        assert talk.interrupt(send="two").outcome == "dequeued"
        talk.result(f"call_{turn}.0")
        await talk.done()
        assert talk.said() == ["user: one", "assistant: ", "tool: done"]
        assert await talk.dones() == ["completed", "interrupted/by_client"]


async def test_a_steering_message_is_stored_before_any_model_sees_it() -> None:
    async with talking([asks(call(0))], says("b"), tools=TOOLS) as talk:
        turn = talk.send("one").turn
        await settled()
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        talk.send("two", policy="steer")
        talk.result(f"call_{turn}.0")
        await anyio.sleep(5.0)
        assert len(talk.provider.requests) == 1
        gate.set()
        await talk.done()
        assert talk.said()[-1] == "user: two"


async def test_what_comes_while_the_prompt_is_read_waits_for_the_next_call() -> None:
    class Slow(FaultyStore):
        async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
            await anyio.sleep(1.0)
            return await super().read(key, after, max_bytes)

    async with talking(*[says(n) for n in "abcde"], store=Slow()) as talk:
        for content in ("one", "two", "three"):
            talk.send(content)
            await talk.done()
            await talk.rig.committer.flush()
        talk.send("four")
        await until(lambda: talk.conversation.log.clean)
        await anyio.sleep(0.5)
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        assert talk.send("five", policy="steer").outcome == "steering"
        await anyio.sleep(5.0)
        assert talk.said()[-1] == "user: four"
        gate.set()
        await talk.done()
        assert talk.said()[-1] == "user: five"
        assert talk.said().count("user: five") == 1


async def test_what_comes_while_the_prompt_is_folded_joins_no_call_that_lacks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request, "_FOLDED_AT_ONCE", 1)
    add, late = PromptFold.add, iter(["late"])

    async with talking(says("one"), says("two"), says("three")) as talk:
        talk.send("first")
        await talk.done()

        def adding(fold: PromptFold, entries: Sequence[Entry]) -> None:
            add(fold, entries)
            for word in late:
                talk.send(word, policy="steer")

        monkeypatch.setattr(PromptFold, "add", adding)
        talk.send("second")
        await talk.done()
        assert talk.said(1) == ["user: first", "assistant: one", "user: second"]
        assert talk.said(2)[3:] == ["assistant: two", "user: late"]
        assert await talk.dones() == ["completed"] * 3
