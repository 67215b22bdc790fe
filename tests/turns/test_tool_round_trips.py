"""Tools: who is asked, what becomes of results, and when the model goes on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import permutations
from typing import Any

import anyio
import msgspec
import pytest

from protocol.commands import Delete, ToolResult
from protocol.content import Config, Tool
from protocol.control import ToolRequest
from protocol.events import ToolCallEvent, ToolResultEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import ALICE, FakeViewer
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import EPOCH, Talk, asks, call, settled, talking
from wsserver.engine.moments import timestamp
from wsserver.turns.errors import CommandError
from wsserver.turns.services import ConversationLimits

TOOLS = [Tool(name="weather"), Tool(name="clock", timeout_s=5)]
ONE: list[Step] = [asks(call(0))]
THREE: list[Step] = [asks(call(0), call(1), call(2))]


async def asked(talk: Talk, viewer: FakeViewer | None = None) -> int:
    """Sends a message, and waits until its tools are asked for."""
    turn = talk.send(viewer=viewer).turn
    await settled()
    assert talk.conversation.turn is not None
    assert talk.conversation.turn.phase == "waiting_tools"
    return turn or 0


def took(viewer: FakeViewer) -> list[str]:
    return [
        request.call.rpartition(".")[0] + (" again" if request.redelivered else "")
        for request in viewer.requests
    ]


async def results(talk: Talk) -> list[str]:
    return [
        f"{event.status}: {event.output}"
        for event in await talk.log()
        if isinstance(event, ToolResultEvent)
    ]


async def test_a_round_trip() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS, handles=("weather",)) as talk:
        turn = await asked(talk)
        [request] = talk.viewer.requests
        wire = msgspec.json.decode(msgspec.json.encode(request), type=ToolRequest)
        assert wire == ToolRequest(
            conversation="c",
            turn=turn,
            call=talk.call_id(f"call_{turn}.0"),
            name="weather",
            arguments={},
            deadline_ms=wire.deadline_ms,
            redelivered=False,
        )
        assert 119_900 < wire.deadline_ms <= 120_000
        [shown] = [e for e in await talk.log() if isinstance(e, ToolCallEvent)]
        assert (shown.call, shown.batch, shown.index) == (request.call, 0, 0)
        assert shown.deadline_at.startswith(timestamp(EPOCH + 120)[:18])
        await anyio.sleep(2.0)
        assert talk.result(request.call, {"degrees": 21.5}) == "accepted"
        done = await talk.done()
        assert done.status == "completed"
        assert 2000 <= (done.timing.tool_ms or 0) < 2100
        assert talk.said() == [
            "user: hi", "assistant: ", 'tool: {"degrees":21.5}',
        ]  # fmt: skip
        settled_event = (await talk.log())[-4]
        assert settled_event.by == "alice"


# Who is asked


async def test_the_sender_is_asked_if_it_can_else_who_came_last() -> None:
    for sender_can, wanted in [(True, "c1"), (False, "c3")]:
        handles = ("weather",) if sender_can else ()
        async with talking(ONE, says("ok"), tools=TOOLS, handles=handles) as talk:
            viewers = {"c1": talk.viewer}
            for name, can in [("c2", True), ("c3", True), ("c4", False)]:
                viewers[name] = talk.join(name, *(["weather"] if can else []))
            turn = await asked(talk)
            for name, viewer in viewers.items():
                assert took(viewer) == [f"call_{turn}.0"] * (name == wanted)


async def test_when_the_asked_one_leaves_the_next_is_asked() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS, handles=("weather",)) as talk:
        second, third = talk.join("c2", "weather"), talk.join("c3", "weather")
        bystander = talk.join("c4")
        turn = await asked(talk)
        name = f"call_{turn}.0"
        talk.conversation.detach(second)
        assert took(third) == []
        talk.conversation.detach(talk.viewer)
        assert took(third) == [name + " again"]
        talk.conversation.detach(third)
        assert took(bystander) == []
        fourth = talk.join("c5", "weather")
        talk.join("c6", "weather")
        assert took(fourth) == [name + " again"]
        talk.conversation.detach(third)
        assert took(fourth) == [name + " again"], "leaving twice is leaving once"


async def test_a_call_that_nobody_can_run_waits_for_one_who_comes() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS) as talk:
        turn = await asked(talk)
        await anyio.sleep(100.0)
        second = talk.join("c2", "weather")
        assert took(second) == [f"call_{turn}.0"], "it was asked of nobody before"
        assert 19_000 < second.requests[0].deadline_ms <= 20_000


async def test_a_first_request_that_is_late_has_what_is_left_until_progress() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS) as talk:
        turn = await asked(talk)
        await anyio.sleep(119.0)
        late = talk.join("c2", "weather")
        assert took(late) == [f"call_{turn}.0"]
        assert 0 < late.requests[0].deadline_ms <= 1000
        talk.progress(f"call_{turn}.0")
        await anyio.sleep(119.0)
        assert talk.result(f"call_{turn}.0") == "accepted"


async def test_a_redelivery_leaves_half_a_minute() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS, handles=("weather",)) as talk:
        turn = await asked(talk)
        await anyio.sleep(119.0)
        talk.conversation.detach(talk.viewer)
        again = talk.join("c1", "weather")
        assert took(again) == [f"call_{turn}.0 again"]
        assert 29_900 < again.requests[0].deadline_ms <= 30_000
        await anyio.sleep(29.0)
        assert talk.result(f"call_{turn}.0") == "accepted"


async def test_opening_anew_on_the_same_connection_is_asked_again_once() -> None:
    async with talking(ONE, says("ok"), tools=TOOLS, handles=("weather",)) as talk:
        turn = await asked(talk)
        earlier, talk.viewer = talk.viewer, talk.join("c1", "weather")
        talk.conversation.detach(earlier)
        assert took(earlier) == [f"call_{turn}.0"]
        assert took(talk.viewer) == [f"call_{turn}.0 again"]


async def test_each_call_of_a_batch_is_asked_of_one_who_handles_it() -> None:
    script: list[Step] = [asks(call(0), call(1, "clock"), call(2))]
    async with talking(script, says("ok"), tools=TOOLS, handles=("weather",)) as talk:
        second = talk.join("c2", "clock")
        turn = await asked(talk)
        assert took(talk.viewer) == [f"call_{turn}.0", f"call_{turn}.2"]
        assert took(second) == [f"call_{turn}.1"]


# When the model goes on


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_results_in_any_order_make_one_continuation_in_call_order(
    order: tuple[int, ...],
) -> None:
    async with talking(THREE, says("ok"), tools=TOOLS) as talk:
        turn = await asked(talk)
        for number in order:
            assert len(talk.provider.requests) == 1
            assert talk.result(f"call_{turn}.{number}", f"r{number}") == "accepted"
            await settled()
        await talk.done()
        assert len(talk.provider.requests) == 2
        assert talk.said() == [
            "user: hi",
            "assistant: ",
            "tool: r0",
            "tool: r1",
            "tool: r2",
        ]
        check_prompt(list(talk.provider.requests[-1].messages))


async def test_one_call_that_fails_and_one_that_is_late_leave_the_others() -> None:
    script: list[Step] = [asks(call(0), call(1, "clock"), call(2))]
    async with talking(script, says("ok"), tools=TOOLS) as talk:
        turn = await asked(talk)
        assert talk.result(f"call_{turn}.0", error="") == "accepted"
        await anyio.sleep(5.1)
        assert talk.result(f"call_{turn}.1", "too late") == "late"
        assert talk.result(f"call_{turn}.2", "r2") == "accepted"
        await talk.done()
        assert await results(talk) == [
            "error: The tool failed without saying why.",
            "timeout: The tool did not answer in time.",
            "ok: r2",
        ]
        assert [line for line in talk.said() if line.startswith("tool")] == [
            "tool: The tool failed without saying why.",
            "tool: The tool did not answer in time.",
            "tool: r2",
        ]
        for number, outcome in [(0, "conflict"), (1, "late"), (2, "duplicate")]:
            assert talk.result(f"call_{turn}.{number}", "r2") == outcome


async def test_the_first_result_wins_whoever_sends_it_and_after_the_model_went_on() -> (
    None
):
    async with talking([asks(call(0))], [[], 50.0, *says("ok")], tools=TOOLS) as talk:
        turn = await asked(talk)
        name = f"call_{turn}.0"
        assert talk.result(name, [1, {"a": None}]) == "accepted"
        await settled()
        assert len(talk.provider.requests) == 2
        assert talk.result(name, [1, {"a": None}]) == "duplicate"
        assert talk.result(name, [2]) == "conflict"
        assert talk.result(name, error="no") == "conflict"
        assert talk.result(f"call_{turn}.7") == "unknown"
        assert talk.result("call_1.0") == "unknown"
        await talk.done()
        assert await results(talk) == ["ok: [1, {'a': None}]"]
        assert talk.result(name, [2]) == "conflict", "of the last turn"


async def test_progress_keeps_a_long_call_alive() -> None:
    script: list[Step] = [asks(call(0, "clock"))]
    async with talking(script, says("ok"), tools=TOOLS) as talk:
        turn = await asked(talk)
        for _ in range(10):
            await anyio.sleep(4.0)
            talk.progress(f"call_{turn}.0")
            talk.progress("call_9.9")
        assert talk.result(f"call_{turn}.0") == "accepted"
        await talk.done()
        talk.progress(f"call_{turn}.0")
        assert await results(talk) == ["ok: done"]


async def test_approval_may_take_longer_than_a_turn() -> None:
    tools = [Tool(name="weather", timeout_s=None)]
    async with talking(ONE, says("ok"), tools=tools) as talk:
        turn = await asked(talk)
        await anyio.sleep(23 * 3600.0)
        assert talk.result(f"call_{turn}.0", "yes") == "accepted"
        assert (await talk.done()).status == "completed"
    async with talking(ONE, says("ok"), tools=tools) as talk:
        await asked(talk)
        await anyio.sleep(25 * 3600.0)
        assert await results(talk) == ["timeout: The tool did not answer in time."]
        assert (await talk.done()).status == "completed"


async def test_an_output_that_is_too_large_leaves_the_call_open() -> None:
    limits = ConversationLimits(tool_output_bytes=20)
    async with talking(ONE, says("ok"), tools=TOOLS, limits=limits) as talk:
        turn = await asked(talk)
        name = f"call_{turn}.0"
        for members in ({"output": "x" * 20}, {"error": "x" * 20}):
            with pytest.raises(CommandError) as refused:
                talk.result(name, **members)
            assert refused.value.body.code == "too_large"
        assert talk.result(name, "x" * 18) == "accepted"
        await talk.done()
        assert await results(talk) == [f"ok: {'x' * 18}"]


# What is never run


@pytest.mark.parametrize(
    ("bad", "note"),
    [
        (call(1, arguments="{"), "not valid JSON"),
        (call(1, "rocket"), "There is no tool 'rocket'."),
        (call(1, "strict"), "do not fit the tool's schema"),
    ],
)
async def test_a_call_that_can_not_be_run_is_told_to_the_model_alone(
    bad: Any, note: str
) -> None:
    strict = Tool(name="strict", parameters={"type": "object", "required": ["place"]})
    script: list[Step] = [asks(call(0), bad)]
    handles = ("weather", "rocket", "strict")
    tools = [*TOOLS, strict]
    async with talking(script, says("ok"), tools=tools, handles=handles) as talk:
        turn = await asked(talk)
        assert took(talk.viewer) == [f"call_{turn}.0"]
        talk.result(f"call_{turn}.0", "r0")
        await talk.done()
        [shown] = [e for e in await talk.log() if isinstance(e, ToolCallEvent)]
        assert shown.index == 0
        invalid = [
            event
            for event in await talk.log()
            if isinstance(event, ToolResultEvent) and event.status == "invalid"
        ]
        assert len(invalid) == 1
        assert note in invalid[0].output
        assert invalid[0].invalid is not None
        assert invalid[0].invalid.name == bad.name
        assert note in talk.said()[-1]
        check_prompt(list(talk.provider.requests[-1].messages))


async def test_a_batch_that_can_not_be_run_at_all_goes_on_at_once() -> None:
    script: list[Step] = [asks(call(0, "rocket")), 1.0]
    async with talking(script, says("sorry"), tools=TOOLS) as talk:
        talk.send()
        assert (await talk.done()).status == "completed"
        assert len(talk.provider.requests) == 2
        assert talk.provider.open_calls == 0, "one call at a time"
        assert "tool_call" not in await talk.kinds()


async def test_a_provider_that_breaks_after_its_last_event_breaks_nothing() -> None:
    class BreaksAtTheEnd(ScriptedProvider):
        @asynccontextmanager
        async def stream(self, request: Any) -> AsyncGenerator[Any]:
            async with super().stream(request) as stream:
                yield stream
            raise ZeroDivisionError

    provider = BreaksAtTheEnd([asks(call(0))], says("ok"))
    async with talking(provider=provider, tools=TOOLS) as talk:
        turn = await asked(talk)
        talk.result(f"call_{turn}.0")
        assert (await talk.done()).status == "completed"


async def test_what_the_model_never_gets_it_did_not_ask_for() -> None:
    """A result for a call of another conversation is unknown here."""
    async with talking(ONE, says("ok"), tools=TOOLS) as talk:
        other = await talk.another("d")
        turn = await asked(talk)
        assert other.result(f"call_{turn}.0") == "unknown"
        await settled()
        assert len(talk.provider.requests) == 1


async def test_a_result_of_what_was_deleted_is_for_no_call_of_what_was_made_anew() -> (
    None
):
    delete, key, config = (
        Delete(id="d", conversation="c"),
        "alice/c",
        Config(tools=TOOLS),
    )
    async with talking(ONE, ONE, tools=TOOLS, handles=("weather",)) as talk:
        turn = await asked(talk)
        [before] = talk.viewer.requests
        directory = talk.rig.directory
        await directory.delete(key, delete, ALICE)
        talk.conversation, _ = await directory.create(key, config, ALICE)
        viewer = talk.join("c2", "weather")
        assert await asked(talk) == turn, "what could be taken for another is alike"
        [request] = viewer.requests
        for call_id, outcome in ((before.call, "unknown"), (request.call, "accepted")):
            late = ToolResult(
                id=f"of {call_id}", conversation="c", call=call_id, output=1
            )
            assert talk.apply(late).outcome == outcome


async def test_too_many_rounds_end_the_turn_with_a_valid_history() -> None:
    async with talking(*[ONE] * 17, says("ok"), tools=TOOLS) as talk:
        turn = talk.send().turn
        for number in range(16):
            await settled()
            assert talk.result(f"call_{turn}.{number}") == "accepted"
        done = await talk.done()
        assert done.status == "failed"
        assert (await talk.log())[-2].code == "too_many_tool_rounds"
        talk.send("next")
        await talk.done()
        check_prompt(list(talk.provider.requests[-1].messages))
