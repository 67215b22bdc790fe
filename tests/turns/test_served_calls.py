"""Calls that the server runs itself: settled once, cut to size, cancelled in time."""

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from protocol.commands import Configure, Interrupt, Send, ToolProgress, ToolResult
from protocol.content import Config, Tool
from protocol.events import ToolCallEvent
from tests.fakes.rig import ALICE, FakeViewer, done, events, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.fakes.strict_messages import find_fault
from tests.turns.served import (
    ADD,
    FakeTools,
    begun,
    calling,
    gives,
    hangs,
    named,
    raises,
    results,
)
from wsserver.engine.limits import TurnLimits
from wsserver.engine.server_tools import ToolContext
from wsserver.engine.tools import ToolTimes
from wsserver.log.store import Write
from wsserver.stores.memory import MemoryStore
from wsserver.turns.services import ConversationLimits


async def test_a_call_is_told_run_and_answered() -> None:
    contexts: list[ToolContext] = []

    async def add(arguments: Any, context: ToolContext) -> Any:
        contexts.append(context)
        return {"sum": arguments["a"] + 1}

    tools = FakeTools(add=add)
    tools.tools["add"] = Tool(name="add", description="Adds.", parameters=ADD)
    provider = ScriptedProvider(calling("add", arguments='{"a": 2}'), says("3"))
    async with rig(provider) as r:
        conversation, viewer = await begun(r, tools, *named("add"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert (result.status, result.by) == ("ok", "server")
        assert result.output == {"sum": 3}
        assert viewer.requests == []
        (told,) = provider.requests[0].tools
        assert told["function"]["parameters"] == ADD
        assert told["function"]["description"] == "Adds."
        assert provider.requests[1].messages[-1]["content"] == '{"sum":3}'
        assert find_fault(provider.requests[1].messages) is None
    (context,) = contexts
    assert (context.conversation, context.principal) == ("c", "alice")
    assert context.call == result.call


async def test_what_the_model_is_told_of() -> None:
    tools = FakeTools(mine=gives(1), other=gives(2))
    tools.defaults = ["mine"]
    entries = [
        Tool(name="other", description="Better.", timeout_s=5.0),
        Tool(name="mine", parameters={"type": "object"}),
        Tool(name="theirs"),
    ]
    provider = ScriptedProvider(says("a"))
    async with rig(provider) as r:
        conversation, viewer = await begun(r, tools)
        await done(conversation)
        for number, change in enumerate(([], entries)):
            command = Configure(
                id=f"k{number}", conversation="c", config=Config(tools=change)
            )
            conversation.apply(command, ALICE, viewer)
            send = Send(id=f"s{number}", conversation="c", content="hi")
            conversation.apply(send, ALICE, viewer)
            await done(conversation)
    asked = [
        {tool["function"]["name"]: tool["function"] for tool in request.tools}
        for request in provider.requests
    ]
    assert [list(names) for names in asked] == [
        ["mine"],
        [],
        ["other", "mine", "theirs"],
    ]
    assert asked[2]["other"]["description"] == "Better."
    assert asked[2]["mine"]["description"] == ""


async def test_a_tool_with_parameters_is_the_clients_own() -> None:
    tools = FakeTools(mine=gives(1))
    provider = ScriptedProvider(calling("mine"), says("a"))
    async with rig(provider) as r:
        entry = Tool(name="mine", parameters={"type": "object"})
        conversation, viewer = await begun(r, tools, entry, handles=("mine",))
        await anyio.wait_all_tasks_blocked()
        assert [request.name for request in viewer.requests] == ["mine"]
        assert tools.calls == []
        call = viewer.requests[0].call
        result = ToolResult(id="r", conversation="c", call=call, output=1)
        assert conversation.apply(result, ALICE, viewer).reply.outcome == "accepted"
        await done(conversation)


async def test_a_tool_that_nobody_was_told_of_is_not_run() -> None:
    tools = FakeTools(mine=gives(1), secret=gives(2))
    provider = ScriptedProvider(calling("secret"), says("a"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, tools, *named("mine"))
        await done(conversation)
        (result,) = await results(conversation)
        assert (result.status, result.output) == (
            "invalid",
            "There is no tool 'secret'.",
        )
    assert tools.calls == []


async def test_arguments_that_do_not_fit_the_servers_schema_are_never_run() -> None:
    tools = FakeTools(add=gives(1))
    tools.tools["add"] = Tool(name="add", parameters=ADD)
    provider = ScriptedProvider(calling("add", arguments='{"a": "x"}'), says("a"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, tools, *named("add"))
        await done(conversation)
        assert [result.status for result in await results(conversation)] == ["invalid"]
    assert tools.calls == []


async def test_an_interrupt_cancels_the_call_and_its_task() -> None:
    stopped = anyio.Event()

    async def slow(arguments: Any, context: ToolContext) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    provider = ScriptedProvider(calling("slow", "quick"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(slow=slow, quick=gives(1))
        conversation, viewer = await begun(r, tools, *named("slow", "quick"))
        await anyio.wait_all_tasks_blocked()
        command = Interrupt(id="i", conversation="c")
        reply = conversation.apply(command, ALICE, viewer).reply
        assert reply.outcome == "interrupted"
        with anyio.fail_after(1):
            await stopped.wait()
        assert (await done(conversation)).status == "interrupted"
        found = await results(conversation)
        assert {(r.status, r.by) for r in found} == {
            ("ok", "server"),
            ("cancelled", "server"),
        }
        await anyio.wait_all_tasks_blocked()
        assert len(await results(conversation)) == 2


class HeldStore(MemoryStore):
    """A durable store that holds the commit of a tool call back until released."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = True
        self.held = anyio.Event()
        self.released = anyio.Event()

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        kinds = [entry.kind for write in writes for entry in write.entries]
        if "tool_call" in kinds:
            self.held.set()
            with anyio.fail_after(5):
                await self.released.wait()
        await super().commit(writes, now)


async def test_a_tool_runs_only_when_its_call_is_stored() -> None:
    tools, store = FakeTools(tool=gives(1)), HeldStore()
    async with rig(ScriptedProvider(calling("tool"), says("ok")), store) as r:
        conversation, _ = await begun(r, tools, *named("tool"))
        await store.held.wait()
        await anyio.wait_all_tasks_blocked()
        assert tools.calls == []
        store.released.set()
        assert (await done(conversation)).status == "completed"
        assert len(tools.calls) == 1


async def test_an_interrupt_before_the_tool_has_begun_runs_nothing() -> None:
    tools, store = FakeTools(tool=gives(1)), HeldStore()
    async with rig(ScriptedProvider(calling("tool"), says("ok")), store) as r:
        conversation, viewer = await begun(r, tools, *named("tool"))
        await store.held.wait()
        conversation.apply(Interrupt(id="i", conversation="c"), ALICE, viewer)
        store.released.set()
        assert (await done(conversation)).status == "interrupted"
        await anyio.wait_all_tasks_blocked()
        assert [r.status for r in await results(conversation)] == ["cancelled"]
    assert tools.calls == []


async def test_an_interrupt_in_the_moment_that_the_call_is_stored_runs_nothing() -> (
    None
):
    tools, store = FakeTools(tool=gives(1)), HeldStore()
    async with rig(ScriptedProvider(calling("tool"), says("ok")), store) as r:
        conversation, viewer = await begun(r, tools, *named("tool"))
        await store.held.wait()
        await anyio.wait_all_tasks_blocked()
        log, call, outcomes = conversation.log, conversation.log.head, list[str]()

        def stop() -> None:
            if log.stored >= call and not outcomes:
                command = Interrupt(id="i", conversation="c")
                reply = conversation.apply(command, ALICE, viewer).reply
                outcomes.append(reply.outcome or "")

        log.subscribe(stop)  # told after who waits to run the tool
        store.released.set()
        assert (await done(conversation)).status == "interrupted"
        await anyio.wait_all_tasks_blocked()
        assert outcomes == ["interrupted"]
        assert [r.status for r in await results(conversation)] == ["cancelled"]
    assert tools.calls == []


async def test_a_deadline_ends_the_tool_and_the_turn_goes_on() -> None:
    stopped: list[float] = []

    async def slow(arguments: Any, context: ToolContext) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(anyio.current_time())

    tools = FakeTools(slow=slow)
    tools.tools["slow"] = Tool(name="slow", timeout_s=0.5)
    provider = ScriptedProvider(calling("slow"), says("ok"))
    async with rig(provider) as r:
        began = anyio.current_time()
        conversation, _ = await begun(r, tools, *named("slow"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert result.status == "timeout"
        await anyio.wait_all_tasks_blocked()
        assert 0.5 <= stopped[0] - began < 2


async def test_t05_progress_puts_the_deadline_off() -> None:
    async def long(arguments: Any, context: ToolContext) -> Any:
        for _ in range(5):
            await anyio.sleep(0.3)
            context.progress()
        return "there"

    tools = FakeTools(long=long)
    tools.tools["long"] = Tool(name="long", timeout_s=0.5)
    provider = ScriptedProvider(calling("long"), says("ok"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, tools, *named("long"))
        await done(conversation)
        assert [r.output for r in await results(conversation)] == ["there"]


async def test_a_client_can_neither_answer_nor_prolong_a_servers_call() -> None:
    limits = ConversationLimits(
        turn=TurnLimits(tool_times=ToolTimes(default_seconds=1.0))
    )
    provider = ScriptedProvider(calling("slow"), says("ok"))
    async with rig(provider, limits=limits) as r:
        tools = FakeTools(slow=hangs)
        conversation, viewer = await begun(r, tools, *named("slow"), handles=("slow",))
        await anyio.sleep(0.5)
        (call,) = [
            e for e in await events(conversation) if isinstance(e, ToolCallEvent)
        ]
        result = ToolResult(id="r", conversation="c", call=call.call, output="mine")
        assert conversation.apply(result, ALICE, viewer).reply.outcome == "unknown"
        conversation.tool_progress(ToolProgress(conversation="c", call=call.call).call)
        later = FakeViewer(conversation, "c2", "slow")
        conversation.attach(later)
        conversation.detach(viewer)
        began = anyio.current_time()
        await done(conversation)
        assert anyio.current_time() - began < 0.9
        assert viewer.requests == later.requests == []
        assert [r.status for r in await results(conversation)] == ["timeout"]


@pytest.mark.parametrize("output", ["mine", "other"])
async def test_nor_is_its_result_one_that_a_client_could_have_given(
    output: str,
) -> None:
    provider = ScriptedProvider(calling("mine"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(mine=gives("mine"))
        conversation, viewer = await begun(r, tools, *named("mine"))
        await done(conversation)
        (settled,) = await results(conversation)
        result = ToolResult(id="r", conversation="c", call=settled.call, output=output)
        assert conversation.apply(result, ALICE, viewer).reply.outcome == "unknown"


async def test_tools_of_client_and_server_in_one_batch() -> None:
    provider = ScriptedProvider(calling("theirs", "mine"), says("ok"))
    async with rig(provider) as r:
        theirs = Tool(name="theirs", parameters={"type": "object"})
        conversation, viewer = await begun(
            r, FakeTools(mine=gives("m")), theirs, *named("mine"), handles=("theirs",)
        )
        await anyio.wait_all_tasks_blocked()
        (request,) = viewer.requests
        result = ToolResult(id="r", conversation="c", call=request.call, output="t")
        conversation.apply(result, ALICE, viewer)
        await done(conversation)
        told = [m["content"] for m in provider.requests[1].messages[-2:]]
        assert told == ["t", "m"]
        assert [r.by for r in await results(conversation)] == ["server", "alice"]


async def test_a_tool_that_will_not_stop_holds_up_nothing() -> None:
    release = anyio.Event()

    async def stubborn(arguments: Any, context: ToolContext) -> Any:
        with anyio.CancelScope(shield=True):
            await release.wait()
        return "late"

    provider = ScriptedProvider(calling("stubborn"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(stubborn=stubborn)
        conversation, viewer = await begun(r, tools, *named("stubborn"))
        await anyio.wait_all_tasks_blocked()
        conversation.apply(Interrupt(id="i", conversation="c"), ALICE, viewer)
        assert (await done(conversation)).status == "interrupted"
        conversation.apply(Send(id="s2", conversation="c", content="x"), ALICE, viewer)
        assert (await done(conversation)).status == "completed"
        release.set()
        await anyio.wait_all_tasks_blocked()
        assert [r.status for r in await results(conversation)] == ["cancelled"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_that_cancels_itself_fails_alone() -> None:
    provider = ScriptedProvider(calling("bad"), says("ok"))
    lives_on = False
    async with rig(provider) as r:
        tools = FakeTools(bad=raises(asyncio.CancelledError()))
        conversation, _ = await begun(r, tools, *named("bad"))
        assert (await done(conversation)).status == "completed"
        assert [r.status for r in await results(conversation)] == ["error"]
        lives_on = True
    assert lives_on
