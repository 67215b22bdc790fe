"""Python callables as tools: their schemas, arguments, outputs and failures."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import jsonschema_rs
import pytest
import structlog
from msgspec import UNSET

from protocol.tool_signature import UnusableToolError
from tests.tools import samples
from tests.tools.mcp_rig import context
from wsserver.engine.server_tools import ToolError
from wsserver.tools import python_tools
from wsserver.tools.python_tools import PythonTool, PythonTools


async def run(function: Callable[..., Any], arguments: Any = None) -> Any:
    tools = PythonTools({"t": PythonTool("t", function)})
    with anyio.fail_after(10):
        return await tools.run("t", {} if arguments is None else arguments, context())


def test_a_schema_says_what_the_signature_says() -> None:
    tool = PythonTool("weather", samples.weather).tool
    assert tool.description.startswith("Says how the weather will be.\n\nArgs:")
    assert tool.timeout_s is UNSET
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "unit": {"$ref": "#/$defs/Unit", "default": "celsius"},
            "days": {
                "type": "integer",
                "minimum": 1,
                "maximum": 7,
                "description": "How many days.",
                "default": 1,
            },
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "country": {
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                        "default": None,
                    },
                },
                "required": ["city"],
            },
            "Unit": {"title": "Unit", "enum": ["celsius", "fahrenheit"]},
        },
    }


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (samples.weather, {"place": {"city": "Rome"}, "days": 7}),
        (samples.add, {"a": 1, "words": ["x"]}),
        (samples.anything, {"value": {"any": [1]}}),
        (samples.asks, {}),
        (samples.where, {}),
    ],
)
def test_what_the_schema_takes_the_tool_takes(
    function: Callable[..., Any], arguments: Any
) -> None:
    tool = PythonTool("t", function)
    assert tool.tool.parameters is not None
    validator = jsonschema_rs.validator_for(tool.tool.parameters)
    assert validator.is_valid(arguments)
    assert not validator.is_valid({**arguments, "more": 1})
    tool._signature.keywords(arguments, context())


async def test_arguments_become_what_the_hints_say() -> None:
    given = {"place": {"city": "Rome", "country": "IT"}, "unit": "fahrenheit"}
    assert await run(samples.weather, given) == {
        "place": {"city": "Rome", "country": "IT"},
        "unit": "fahrenheit",
        "days": 1,
    }
    assert await run(samples.add, {"a": 1, "words": ["x", "y"]}) == 4
    assert await run(samples.keeps) == ["a"]
    assert await run(samples.anything, {"value": [1, "a"]}) == [1, "a"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"a": "1"}, {"a": 1.5}, {"a": 1, "c": 2}, [1], "a", 7, {"a": None}],
    ids=str,
)
async def test_arguments_that_do_not_fit_are_an_error(arguments: Any) -> None:
    with pytest.raises(ToolError, match="The arguments do not fit: "):
        await run(samples.add, arguments)


async def test_callables_of_all_kinds() -> None:
    counter = samples.Counter()
    assert await run(counter, {"by": 2}) == 2
    assert await run(counter.later, {"by": 3}) == 5
    assert PythonTool("c", counter.later).tool.description == "Counts later."
    assert await run(samples.add_two, {"a": 1}) == 3
    assert PythonTool("a", samples.add_two).tool.description == "Adds."
    told = PythonTool("a", samples.add, description="Better.", timeout_seconds=3.0)
    assert (told.tool.description, told.tool.timeout_s) == ("Better.", 3.0)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (samples.many, "has no name"),
        (samples.by_place, "has no name"),
        (samples.generator, "generator"),
        (samples.async_generator, "generator"),
        (samples.unhinted, "Nowhere"),
        (samples.unjson, "no JSON holds"),
    ],
)
def test_what_can_be_no_tool(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(UnusableToolError, match=why):
        PythonTool("t", function)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x" * 65, "é"])
def test_what_can_be_no_name(name: str) -> None:
    with pytest.raises(UnusableToolError, match="is no name of a tool"):
        PythonTool(name, samples.add)


async def test_only_what_is_async_runs_in_the_loop() -> None:
    assert await run(samples.where) == "tool"


async def test_what_is_bound_to_the_log_is_bound_in_a_thread_too() -> None:
    with structlog.contextvars.bound_contextvars(request="r1"):
        assert await run(structlog.contextvars.get_contextvars) == {"request": "r1"}


async def test_a_tool_knows_for_whom_it_runs() -> None:
    told: list[str] = []

    def progress() -> None:
        told.append(threading.current_thread().name)

    for function in (samples.asks, asks_async):
        tool = PythonTool("t", function)
        assert tool.tool.parameters is not None
        assert list(tool.tool.parameters["properties"]) == ["times"]
        tools = PythonTools({"t": tool})
        said = await tools.run("t", {"times": 2}, context(progress))
        assert said == "alice in c: call_1.0"
    assert told == ["MainThread"] * 4


async def asks_async(context: samples.ToolContext, times: int) -> str:
    return samples.asks(context, times)


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("bytes", "AP8="),
        ("date", "2026-11-29T00:00:00Z"),
        ("set", ["a"]),
        ("path", "some/file"),
        ("pydantic", {"place": "Rome", "when": "2026-11-29"}),
        ("dataclass", {"city": "Rome", "country": None}),
        ("keys", {"1": "a", "2026-11-29": "b"}),
        ("tuple", (1, 2)),
        ("none", None),
        ("huge int", 2**70),
        ("infinity", float("inf")),
    ],
)
async def test_t10_outputs_become_json(kind: str, output: Any) -> None:
    assert await run(samples.odd, {"kind": kind}) == output


@pytest.mark.parametrize("kind", ["object", "generator"])
async def test_t10_outputs_that_no_json_holds_are_errors(kind: str) -> None:
    with pytest.raises(ToolError, match=f"as JSON: {kind} is no JSON type"):
        await run(samples.odd, {"kind": kind})
    with pytest.raises(ToolError, match="as JSON: maximum recursion"):
        await run(samples.deep)


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("tool", ToolError, "no such city"),
        ("value", ValueError, "a bad value"),
        ("empty", ValueError, "^$"),
        ("exit", ToolError, r"The tool wanted to exit \(3\)."),
        ("stop", RuntimeError, "StopIteration"),
    ],
)
async def test_t09_failures_pass_through(
    how: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        await run(samples.fails, {"how": how})


async def test_an_async_tool_that_exits_does_not_end_the_server() -> None:
    with pytest.raises(ToolError, match="wanted to exit"):
        await run(samples.exits)


async def test_tools_that_hang_take_no_more_than_their_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_tools, "MOST_THREADS", 2)
    tools = PythonTools(
        {name: PythonTool(name, getattr(samples, name)) for name in ("stuck", "where")}
    )
    samples.RELEASE.clear()
    try:
        for _ in range(5):
            with anyio.move_on_after(0.05) as scope:
                await tools.run("stuck", {}, context())
            assert scope.cancelled_caught
        assert tools._threads.busy == 2
        with anyio.move_on_after(0.05) as scope:
            await tools.run("where", {}, context())
        assert scope.cancelled_caught, "there is no place for it"
    finally:
        samples.RELEASE.set()
    with anyio.fail_after(5):
        assert await tools.run("where", {}, context()) == "tool"
    assert tools._threads.busy <= 2


async def test_a_thread_that_can_not_be_had_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    tools = PythonTools({"where": PythonTool("where", samples.where)})
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError):
            await tools.run("where", {}, context())
    assert tools._threads.busy == 0
    assert await tools.run("where", {}, context()) == "tool"


async def test_a_tool_can_be_cancelled() -> None:
    for function in (samples.slow, samples.stuck):
        samples.RELEASE.clear()
        began = anyio.current_time()
        with anyio.move_on_after(0.05):
            await run(function)
        assert anyio.current_time() - began < 1
        samples.RELEASE.set()
