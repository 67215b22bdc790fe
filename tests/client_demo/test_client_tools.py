"""Async functions as tools: schema, results, failures, redelivery, cancellation."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import pytest
from msgspec import Meta, Struct

from client_demo import Client, connect, tool
from client_demo.tools import Fault, Output, ToolContext
from protocol.control import ToolRequest
from tests.client_demo.double import AT, Double, Frame


class Place(Struct):
    city: str


@tool
async def weather(
    city: Annotated[str, Meta(description="Where")], unit: Literal["c", "f"] = "c"
) -> dict[str, Any]:
    """Tells the weather."""
    return {"city": city, "unit": unit}


@tool(name="approve", timeout_s=None)
async def ask_a_person(place: Place) -> str:
    return place.city


def test_the_signature_is_the_schema() -> None:
    declared = weather.declaration
    assert (declared.name, declared.description) == ("weather", "Tells the weather.")
    assert declared.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"enum": ["c", "f"], "default": "c"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert ask_a_person.declaration.timeout_s is None
    assert ask_a_person.declaration.parameters is not None
    assert "Place" in ask_a_person.declaration.parameters["$defs"]


def context(**members: Any) -> ToolContext:
    given = {"arguments": {}, "deadline_ms": 1000, "redelivered": False} | members
    request = ToolRequest(conversation="c", turn=2, call="k", name="n", **given)
    return ToolContext(request, lambda: None)


async def test_a_tool_is_still_a_function() -> None:
    assert await weather("Bern") == {"city": "Bern", "unit": "c"}


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({"city": "Bern"}, Output(output={"city": "Bern", "unit": "c"})),
        (
            {"city": "Bern", "country": "CH"},
            Fault(message="ValidationError: Object contains unknown field `country`"),
        ),
        ({}, Fault(message="ValidationError: Object missing required field `city`")),
    ],
)
async def test_arguments_are_checked(arguments: Any, outcome: Output | Fault) -> None:
    assert await weather.run(arguments, context()) == outcome


def test_what_has_no_name_is_no_argument() -> None:
    def greedy(*cities: str) -> None:
        del cities

    with pytest.raises(TypeError, match=r"greedy.*\*cities: str has no name"):
        tool(greedy)


def test_what_yields_is_no_tool() -> None:
    async def steps(city: str) -> AsyncGenerator[str]:
        yield city

    with pytest.raises(TypeError, match=r"steps.* is a generator; return a list"):
        tool(steps)


async def test_a_function_with_some_of_its_arguments_is_a_tool() -> None:
    async def report(city: str, unit: str) -> dict[str, str]:
        """Tells the weather."""
        return {"city": city, "unit": unit}

    made = tool(partial(report, unit="f"))
    assert made.name == "report"
    assert made.declaration.description == "Tells the weather."
    assert await made.run({"city": "Bern"}, context()) == Output(
        output={"city": "Bern", "unit": "f"}
    )


async def test_the_context_is_given_by_the_client() -> None:
    async def where(city: str, context: ToolContext) -> list[Any]:
        return [city, context.turn, context.call, context.redelivered]

    made = tool(where)
    assert made.declaration.parameters is not None
    assert [*made.declaration.parameters["properties"]] == ["city"]
    told = context(redelivered=True)
    assert await made.run({"city": "Bern"}, told) == Output(
        output=["Bern", 2, "k", True]
    )


async def request(server: Double, name: str, call: str = "k", **members: Any) -> None:
    await server.peer.send(
        type="tool_request", conversation="c", turn=2, call=call, name=name,
        deadline_ms=1000, **{"arguments": {}, "redelivered": False} | members,
    )  # fmt: skip


async def settle(server: Double, status: str, call: str = "k") -> None:
    server.logs["c"] += [
        {"type": "message", "conversation": "c", "seq": 1, "id": "x", "role": "user",
         "content": "", "by": "me", "at": AT},
    ]  # fmt: skip
    await server.peer.send(**server.logs["c"][0])
    await server.event(
        "c", "tool_result", turn=2, call=call, status=status, output="", by="server"
    )


async def result(server: Double) -> Frame:
    frame = await server.peer.command("tool_result")
    await server.peer.reply(frame, "accepted")
    return frame


async def open_with(client: Client, *tools: Any) -> None:
    await client.open("c", tools=tools)


async def test_a_request_runs_the_tool_and_sends_its_result(server: Double) -> None:
    async with connect(server.url) as client:
        await open_with(client, weather)
        (opening,) = server.peer.opens
        assert opening["handles"] == ["weather"]
        assert opening["config"]["tools"][0]["name"] == "weather"
        await request(server, "weather", arguments={"city": "Bern", "unit": "f"})
        given = await result(server)
        assert given["output"] == {"city": "Bern", "unit": "f"}
        assert (given["conversation"], given["call"]) == ("c", "k")


async def test_of_conversations_that_were_let_go_no_tools_are_kept(
    server: Double,
) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        for conversation in ("c", "d"):
            chat = await client.open(conversation, tools=[weather])
            tasks.start_soon(chat.close)
            await server.peer.reply(await server.peer.command("close"), "closed")
        assert not client._session.tools._tools


async def test_what_a_tool_raises_is_told_to_the_model(server: Double) -> None:
    async def broken() -> str:
        raise LookupError("no such city")

    async def odd() -> Any:
        return object()

    async def half() -> str:
        return "\ud83d"

    async with connect(server.url) as client:
        await open_with(client, broken, odd, half)
        await request(server, "broken", "k1")
        assert (await result(server))["error"] == {
            "message": "LookupError: no such city"
        }
        await request(server, "odd", "k2")
        assert "TypeError" in (await result(server))["error"]["message"]
        await request(server, "half", "k3")
        assert "error" in await result(server)
        await request(server, "unknown", "k4")
        assert "unknown" in (await result(server))["error"]["message"]
    assert len(server.peers) == 1


async def test_a_tool_that_still_works_says_so(server: Double) -> None:
    said = anyio.Event()

    async def slow(context: ToolContext) -> str:
        await anyio.sleep(1)
        context.progress()
        await said.wait()
        return "done"

    async with connect(server.url) as client:
        await open_with(client, slow)
        await request(server, "slow")
        progress = await server.peer.command("tool_progress")
        said.set()
        assert (progress["conversation"], progress["call"]) == ("c", "k")
        assert (await result(server))["output"] == "done"


async def test_an_output_that_is_too_large_becomes_an_error(server: Double) -> None:
    async def chatty() -> str:
        return "x" * 100_000

    async with connect(server.url) as client:
        await open_with(client, chatty)
        await request(server, "chatty")
        await server.peer.refuse(await server.peer.command("tool_result"), "too_large")
        second = await server.peer.command("tool_result")
        said = "the tool's output was refused: because"
        assert second["error"]["message"] == said
        await server.peer.refuse(second, "too_large")
        await anyio.sleep(1)
        assert server.peer.waiting() == 0


async def test_an_error_that_is_too_large_becomes_a_shorter_one(server: Double) -> None:
    async def desperate() -> None:
        raise LookupError("x" * 300_000)

    async with connect(server.url) as client:
        await open_with(client, desperate)
        await request(server, "desperate")
        message = (await result(server))["error"]["message"]
        assert message.startswith("the tool's error was refused: The frame has 300")
    assert len(server.peers) == 1


async def test_a_tool_that_runs_over_a_reconnect_runs_once(server: Double) -> None:
    runs: list[str] = []

    async def slow() -> str:
        runs.append("run")
        await anyio.sleep(10)
        return "done"

    async with connect(server.url) as client:
        await open_with(client, slow)
        await request(server, "slow")
        await anyio.sleep(1)
        server.peer.cut()
        await server.connection(2)
        await request(server, "slow", redelivered=True)
        given = await result(server)
        await request(server, "slow", redelivered=True)
        assert await server.peer.command("tool_result") == given
    assert runs == ["run"]


@pytest.mark.parametrize("status", ["timeout", "cancelled"])
async def test_a_tool_whose_call_is_settled_is_stopped(
    server: Double, status: str
) -> None:
    stopped = anyio.Event()

    async def endless() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async with connect(server.url) as client:
        await open_with(client, endless)
        await request(server, "endless")
        await anyio.sleep(1)
        await settle(server, status)
        await stopped.wait()
        await anyio.sleep(1)
        assert server.peer.waiting() == 0
