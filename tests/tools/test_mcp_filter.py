"""What the SDK gets to see of a list of tools, with messages made by hand."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from wsserver.tools.mcp_filter import ToolFilter
from wsserver.tools.mcp_listing import LeftOut

OLD, NEW = "2025-06-18", "2026-07-28"
GOOD = {"name": "good", "inputSchema": {"type": "object"}}


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
    return first + rest, filtering.take_left_out()


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


@pytest.mark.parametrize("tools", [None, {"bad": 1}, "bad"])
async def test_what_is_no_list_is_for_the_sdk_to_refuse(tools: Any) -> None:
    messages, left_out = await seen(OLD, answer(tools=tools), ValueError("no JSON"))
    assert messages[0].message.result == {"tools": tools}
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
        assert len(filtering.take_left_out()) == 1
        assert filtering.take_left_out() == []
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
    ("result", "mended"),
    [
        ({"structuredContent": {"a": 1}}, {"structuredContent": {"a": 1}}),
        (
            {"structuredContent": {"a": 1}, "content": None, "isError": None},
            {"structuredContent": {"a": 1}},
        ),
        ({"structuredContent": [1]}, {"structuredContent": [1]}),
        (
            {"structuredContent": [1], "content": [{"type": "text", "text": "1"}]},
            {"content": [{"type": "text", "text": "1"}]},
        ),
        ({"content": "words"}, {"content": "words"}),
        ({"content": [], "isError": True}, {"isError": True}),
    ],
)
async def test_results_are_mended_where_it_is_clear_what_was_meant(
    result: dict[str, Any], mended: dict[str, Any]
) -> None:
    messages, _ = await seen(OLD, answer(**result))
    expected = {"content": [], "isError": False} | mended
    assert messages[0].message.result == expected
