"""What the SDK gets to see of a list of tools, with messages made by hand."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from wsserver.tools.mcp.filter import ToolFilter
from wsserver.tools.mcp.listing import LeftOut

OLD, NEW = "2025-06-18", "2026-07-28"
GOOD = {"name": "good", "inputSchema": {"type": "object"}}
SERVER = {"name": "s", "version": "1"}


@asynccontextmanager
async def transport(*said: Any) -> AsyncGenerator[Any]:
    sends, incoming = anyio.create_memory_object_stream[Any](len(said))
    outgoing, unsent = anyio.create_memory_object_stream[Any](10)
    with sends, incoming, outgoing, unsent:
        for one in said:
            sends.send_nowait(one)
        sends.close()
        yield incoming, outgoing


def answer(**result: Any) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result=result))


async def seen(version: str | None, *said: Any) -> tuple[list[Any], list[LeftOut]]:
    filtering = ToolFilter()
    filtering.version = version
    async with filtering.around(transport(*said)) as (incoming, _), incoming:
        first = [await incoming.receive()]
        rest = [message async for message in incoming]
    return first + rest, filtering.take_left_out()[0]


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_only_the_tools_that_are_wrong_are_taken_out(version: str) -> None:
    header = {"x": {"type": "array", "x-mcp-header": "X"}}
    mirrored = {
        "name": "mirrored",
        "inputSchema": {"type": "object", "properties": header},
    }
    tools = [{"name": "bad"}, {**GOOD, "icons": 3}, mirrored]
    new = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    messages, left_out = await seen(version, answer(tools=tools, **new))
    kept = messages[0].message.result["tools"]
    if version == OLD:
        assert kept == [GOOD, mirrored]
        assert [one.tool for one in left_out] == ["bad"]
    else:
        assert kept == [GOOD]
        assert left_out[0] == LeftOut(tool="bad", why="inputSchema: field required")
        assert left_out[1].tool == "mirrored"
        assert "x-mcp-header is only permitted on" in left_out[1].why


async def test_what_is_no_message_is_passed_on() -> None:
    messages, left_out = await seen(OLD, answer(tools=[]), ValueError("no JSON"))
    assert isinstance(messages[1], ValueError)
    assert left_out == []


async def test_before_a_version_is_agreed_on_nothing_is_touched() -> None:
    messages, left_out = await seen(None, answer(tools=[3]))
    assert messages[0].message.result == {"tools": [3]}
    assert left_out == []


async def test_what_was_taken_out_is_told_once() -> None:
    filtering = ToolFilter()
    filtering.version = OLD
    async with filtering.around(transport(answer(tools=[3]))) as (incoming, _):
        await incoming.receive()
        assert len(filtering.take_left_out()[0]) == 1
        assert filtering.take_left_out() == ([], [])
        await incoming.aclose()


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_block_of_an_unknown_kind_is_named_in_its_place(version: str) -> None:
    text = {"type": "text", "text": "a", "annotations": {"priority": 1}}
    odd = [{"type": "video", "url": "x"}, {"type": "image"}, "words", {"type": 3}]
    messages, left_out = await seen(version, answer(content=[text, *odd]))
    shown = [
        f"[{kind}: can't be shown]"
        for kind in ("video", "image", "something", "something")
    ]
    content = messages[0].message.result["content"]
    assert content == [text, *({"type": "text", "text": one} for one in shown)]
    assert left_out == []


@pytest.mark.parametrize(
    ("version", "said", "seen_as"),
    [
        (OLD, {"tools": None}, {"tools": []}),
        (OLD, {"tools": {"good": GOOD}}, {"tools": [GOOD]}),
        (OLD, {"content": None}, {"content": [], "isError": False}),
        (OLD, {"other": None}, {"other": None}),
        (
            None,
            {"protocolVersion": OLD, "capabilities": [], "serverInfo": SERVER},
            {"protocolVersion": OLD, "capabilities": {}, "serverInfo": SERVER},
        ),
    ],
)
async def test_results_are_mended(
    version: str | None, said: dict[str, Any], seen_as: dict[str, Any]
) -> None:
    messages, _ = await seen(version, answer(**said))
    assert messages[0].message.result == seen_as


async def test_what_was_wrong_is_told() -> None:
    filtering = ToolFilter()
    first = answer(protocolVersion=OLD, capabilities=None, serverInfo=SERVER)
    php = {"name": "php", "inputSchema": {"type": "object", "properties": []}}
    lists = answer(tools=None), answer(tools=[php], nextCursor=3)
    said = transport(first, *lists)
    async with filtering.around(said) as (incoming, _), incoming:
        await incoming.receive()
        filtering.version = OLD
        assert [message async for message in incoming]
    (fault,) = filtering.handshake_faults
    assert fault.startswith("capabilities: ")
    left_out, faults = filtering.take_left_out()
    assert left_out == []
    assert [fault.partition(":")[0] for fault in faults] == [
        "tools",
        "nextCursor",
        "php",
    ]
