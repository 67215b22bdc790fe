"""What becomes of a message while a turn runs: the four policies."""

from typing import Any

import anyio
import pytest

from protocol.content import Tool
from protocol.events import MessageEvent, StartEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import OneModel
from tests.fakes.scripted import Step, says
from tests.turns.talk import asks, call, settled, talking, until
from wsserver.engine.model import Finished, Text
from wsserver.turns.admission import MOST_WITHDRAWN
from wsserver.turns.errors import CommandError
from wsserver.turns.services import ConversationLimits

TOOLS = [Tool(name="weather")]
SLOW: list[Step] = [[Text("first")], 5.0, [Finished(reason="stop")]]
ENDLESS: list[Step] = [[Text("first")], 1000.0]


@pytest.mark.parametrize("policy", ["queue", "interrupt", "steer", "reject"])
async def test_without_a_running_turn_all_policies_are_the_same(policy: Any) -> None:
    async with talking(says("a")) as talk:
        reply = talk.send(policy=policy)
        assert (reply.outcome, reply.seq, reply.turn) == ("started", 1, 2)
        assert (await talk.done()).status == "completed"
        [message] = [e for e in await talk.log() if isinstance(e, MessageEvent)]
        assert (message.by, message.role, message.steers) == ("alice", "user", None)
        assert message.at.startswith("2027-01-15T08:00:0")
        assert message.at.endswith("Z")


async def test_rejected_while_a_turn_runs() -> None:
    async with talking(SLOW, says("b")) as talk:
        talk.send()
        with pytest.raises(CommandError) as refused:
            talk.send(id="again", policy="reject")
        assert refused.value.body.code == "busy"
        assert refused.value.body.retryable
        await talk.done()
        assert talk.send(id="again", policy="reject").outcome == "started"
        await talk.done()
        assert (await talk.kinds()).count("message") == 2


async def test_a_message_that_interrupts_goes_before_those_that_wait() -> None:
    async with talking(ENDLESS, says("b"), says("c"), says("d")) as talk:
        first = talk.send("one").turn or 0
        await settled()
        talk.send("two")
        reply = talk.send("three", policy="interrupt", seen_seq=first)
        assert (reply.outcome, reply.turn) == ("queued", None)
        talk.send("four", policy="interrupt")
        await talk.done()
        dones = await talk.dones()
        assert dones == ["interrupted/superseded", *["completed"] * 3]
        assert talk.said() == [
            "user: one", "user: three", "assistant: b", "user: four", "assistant: c",
            "user: two",
        ]  # fmt: skip
        assert talk.viewer.muted == [first, first]


async def test_interrupt_and_message_are_one_step() -> None:
    async with talking(ENDLESS, says("b")) as talk:
        talk.send("one")
        await settled()
        talk.send("two", policy="interrupt")
        await talk.done()
        kinds = await talk.kinds()
        assert kinds == [
            "message", "start", "delta", "message", "cut", "usage", "done",
            "start", "delta", "usage", "done",
        ]  # fmt: skip
        assert talk.said() == ["user: one", "assistant: first", "user: two"]


async def test_a_message_that_interrupts_tools_starts_at_once() -> None:
    async with talking([asks(call(0))], says("b"), tools=TOOLS) as talk:
        talk.send("one")
        await settled()
        reply = talk.send("two", policy="interrupt")
        assert (reply.outcome, reply.turn) == ("started", talk.conversation.running)
        await talk.done()
        check_prompt(list(talk.provider.requests[-1].messages))


async def test_a_message_is_stored_before_any_model_sees_it() -> None:
    async with talking(says("a")) as talk:
        gate = talk.rig.store.gate = anyio.Event()  # type: ignore[attr-defined]
        talk.send()
        await anyio.sleep(5.0)
        assert talk.provider.requests == []
        gate.set()
        await talk.done()
        assert len(talk.provider.requests) == 1


async def test_a_turn_that_begins_with_nobody_watching_is_abandoned_too() -> None:
    limits = ConversationLimits(detach_grace_seconds=20.0)
    for on_disconnect, wait in [("cancel", 0.1), (None, 20.1)]:
        async with talking(ENDLESS, limits=limits) as talk:
            talk.conversation.detach(talk.viewer)
            talk.conversation = await talk.rig.conversation()
            talk.send(on_disconnect=on_disconnect)
            await anyio.sleep(wait * 0.9)
            await anyio.sleep(wait * 0.2)
            assert await talk.dones() == ["interrupted/abandoned"]


async def test_messages_of_all_who_watch_go_in_the_order_in_which_they_came() -> None:
    async with talking(SLOW, *[says(str(n)) for n in range(6)]) as talk:
        others = [talk.join(f"c{n}") for n in (2, 3)]
        talk.send("m0")
        for number in range(1, 6):
            talk.send(f"m{number}", others[number % 2])
        await talk.done()
        assert [line for line in talk.said() if line.startswith("user")] == [
            f"user: m{n}" for n in range(6)
        ]
        starts = [e.message for e in await talk.log() if isinstance(e, StartEvent)]
        assert starts == sorted(starts)


async def test_a_turn_starts_as_soon_as_the_one_before_has_its_done() -> None:
    async with talking(
        [[Text("a")], [Finished(reason="stop")], 1000.0], says("b")
    ) as t:
        t.send("one")
        await settled()
        assert t.conversation.turn is None, "though its stream is not closed yet"
        assert t.send("two", policy="reject").outcome == "started"
        await t.done()
        assert await t.dones() == ["completed", "completed"]


# Limits


async def test_withdrawn_messages_take_no_place_in_the_queue() -> None:
    limits = ConversationLimits(queued=2)
    async with talking(SLOW, says("b"), limits=limits) as talk:
        talk.send()
        talk.send(id="a")
        talk.send(id="b")
        with pytest.raises(CommandError) as refused:
            talk.send()
        assert refused.value.body.code == "queue_full"
        talk.interrupt(send="a")
        assert talk.send().outcome == "queued"
        with pytest.raises(CommandError, match=r"2 messages are waiting, and .* is 2;"):
            talk.send()
        assert talk.send(policy="interrupt").outcome == "queued", "it makes place"
        with pytest.raises(CommandError) as refused:
            talk.send(policy="interrupt")
        assert refused.value.body.code == "queue_full", "it would end no other turn"


async def test_withdrawn_messages_do_not_wait_without_end() -> None:
    async with talking(SLOW) as talk:
        talk.send()
        for number in range(MOST_WITHDRAWN):
            talk.send(id=f"w{number}")
            talk.interrupt(send=f"w{number}")
        with pytest.raises(CommandError) as refused:
            talk.send()
        assert refused.value.body.code == "queue_full"
        assert "256 messages that were taken back" in refused.value.body.message
        await talk.done()
        assert talk.send().outcome == "started"


async def test_turns_of_a_principal_are_limited_over_all_its_conversations() -> None:
    limits = ConversationLimits(active_turns=2)
    async with talking(SLOW, limits=limits) as talk:
        others = [await talk.another(f"x{n}") for n in range(2)]
        for other in others:
            other.send()
        with pytest.raises(CommandError) as refused:
            talk.send(id="mine")
        assert refused.value.body.code == "too_many_turns"
        await until(lambda: not others[0].conversation.running)
        assert talk.send(id="mine").outcome == "started"


async def test_a_model_that_is_gone_fails_the_turn_that_waited_for_it() -> None:
    async with talking(SLOW, says("b")) as talk:
        talk.send("one")
        talk.send("two")
        talk.conversation.state.config = type(talk.conversation.state.config)(
            model="none"
        )
        await talk.done()
        assert await talk.dones() == ["completed", "failed"]
        assert (await talk.log())[-2].code == "upstream_error"
        with pytest.raises(CommandError) as refused:
            talk.send()
        assert refused.value.body.code == "bad_model"


async def test_a_turn_keeps_the_settings_it_began_with() -> None:
    scripts = [[asks(call(0))], says("b"), says("c")]
    async with talking(*scripts, tools=TOOLS) as talk:
        talk.configure(instructions="be brief")
        turn = talk.send("one").turn
        await settled()
        talk.configure(instructions="be long", tools=None, model="other")
        talk.result(f"call_{turn}.0")
        await talk.done()
        second = talk.provider.requests[1]
        assert second.messages[0]["content"] == "be brief"
        assert [tool["function"]["name"] for tool in second.tools] == ["weather"]
        talk.send("two")
        await talk.done()
        third = talk.provider.requests[2]
        assert (third.messages[0]["content"], third.model) == ("be long", "other")
        assert third.tools == []


@pytest.mark.parametrize(
    ("members", "code", "param"),
    [
        ({"model": "none"}, "bad_model", "$.config.model"),
        (
            {"tools": [Tool(name="f", parameters={"type": "nothing"})]},
            "bad_frame",
            "$.config.tools[0].parameters",
        ),
        (
            {"response_schema": {"$ref": "http://127.0.0.1/"}},
            "bad_frame",
            "$.config.response_schema",
        ),
        ({"instructions": "x" * 300_000}, "too_large", "$.config"),
    ],
)
async def test_settings_that_no_turn_could_run_with(
    members: dict[str, Any], code: str, param: str
) -> None:
    async with talking(says("a")) as talk:
        before = talk.conversation.state.config
        with pytest.raises(CommandError) as refused:
            talk.configure(**members)
        assert (refused.value.body.code, refused.value.body.param) == (code, param)
        assert talk.conversation.state.config is before
        assert await talk.kinds() == []


async def test_a_long_list_of_models_is_told_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"m{number}" for number in range(15)]
    monkeypatch.setattr(OneModel, "names", lambda _: names)
    async with talking(says("a")) as talk:
        with pytest.raises(CommandError, match="m11 and 3 more"):
            talk.configure(model="none")


async def test_settings_with_any_number_are_stored_and_sent() -> None:
    async with talking(says("a")) as talk:
        talk.configure(params={"seed": 2**80})
        talk.send(metadata={"n": 2**80})
        await talk.done()
        assert talk.provider.requests[0].params == {"seed": 2**80}
        await talk.rig.committer.flush()
        assert not talk.rig.committer.failing


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("other:none", "The model other can't have the options 'none'."),
        ("none:none", "No upstream knows the model 'none:none'; there are: test."),
    ],
)
async def test_options_that_a_model_does_not_know_are_what_is_wrong(
    model: str, fault: str
) -> None:
    async with talking(says("a")) as talk:
        with pytest.raises(CommandError) as refused:
            talk.configure(model=model)
        assert refused.value.body.message == fault
