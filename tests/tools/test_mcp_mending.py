"""What an MCP server says, made into what the SDK takes; and what it says is wrong."""

from typing import Any

import pytest
from mcp.types import InitializeResult, ListToolsResult
from mcp.types.methods import validate_server_result

from wsserver.tools.mcp.mending import mend_handshake, mend_list, mend_output, mend_tool

OLD, NEW = "2025-06-18", "2026-07-28"
NEEDED: dict[str, dict[str, Any]] = {
    OLD: {},
    NEW: {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
}
TOOL = {"name": "good", "inputSchema": {"type": "object"}}
SERVER = {"name": "s", "version": "1"}
NO_OBJECT = "input should be a valid dictionary or instance of "


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("tools", "taken", "why"),
    [
        (None, [], "tools: null instead of a list; taken for an empty one"),
        ("bad", [], "tools: no list; taken for an empty one"),
        (
            {"good": {"inputSchema": {"type": "object"}}, "b": 3},
            [TOOL, 3],
            "tools: an object instead of a list; its members are taken",
        ),
        ({"x": TOOL}, [TOOL], "tools: an object instead of a list; its members"),
    ],
)
def test_tools_that_are_no_list(
    version: str, tools: Any, taken: list[Any], why: str
) -> None:
    result = {"tools": tools, **NEEDED[version]}
    (fault,) = mend_list(result, version)
    assert fault.startswith(why)
    assert result == {"tools": taken, **NEEDED[version]}


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("member", "value", "why"),
    [
        ("nextCursor", 2, "a valid string; what comes after is left out"),
        ("_meta", [], "; it is left out"),
    ],
)
def test_what_surrounds_the_tools(
    version: str, member: str, value: Any, why: str
) -> None:
    result = {"tools": [TOOL], member: value, **NEEDED[version]}
    (fault,) = mend_list(result, version)
    assert fault.startswith(f"{member}: input should be a valid ")
    assert fault.endswith(why)
    assert result == {"tools": [TOOL], **NEEDED[version]}
    validate_server_result("tools/list", version, result)


@pytest.mark.parametrize(
    ("schema", "taken", "why"),
    [
        (None, {"type": "object"}, "inputSchema: no object; taken for that of a tool"),
        ([], {"type": "object"}, "inputSchema: no object; taken for that of a tool"),
        ({}, {"type": "object"}, "inputSchema.type: not there; taken for `object`"),
        (
            {"$schema": "x", "type": None},
            {"$schema": "x", "type": "object"},
            "inputSchema.type: not there",
        ),
        (
            {"type": "object", "properties": []},
            {"type": "object", "properties": {}},
            "inputSchema.properties: no object; taken for an empty one",
        ),
        (
            {"type": "object", "properties": {"a": {}}, "required": None},
            {"type": "object", "properties": {"a": {}}},
            "inputSchema.required: null; taken for not there",
        ),
    ],
)
def test_schemas_that_were_meant_to_be_empty(schema: Any, taken: Any, why: str) -> None:
    tool = {"name": "t", "inputSchema": schema}
    (fault,) = mend_tool(tool)
    assert fault.startswith(why)
    assert tool == {"name": "t", "inputSchema": taken}
    for version in (OLD, NEW):
        result = {"tools": [tool], **NEEDED[version]}
        validate_server_result("tools/list", version, result)


@pytest.mark.parametrize(
    "tool",
    [
        TOOL,
        {"name": "t"},
        {"name": "t", "inputSchema": 3},
        {"name": "t", "inputSchema": {"type": "string"}},
        {"name": "t", "inputSchema": {"type": "object", "properties": [1]}},
        {"name": "t", "inputSchema": {"type": "object", "required": ["a"]}},
    ],
)
def test_schemas_that_say_something_are_left_alone(tool: dict[str, Any]) -> None:
    before = dict(tool)
    assert mend_tool(tool) == []
    assert tool == before


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_list_in_which_nothing_is_wrong(version: str) -> None:
    result = {"tools": [TOOL], "nextCursor": None, **NEEDED[version]}
    before = dict(result)
    assert mend_list(result, version) == []
    assert result == before
    assert ListToolsResult.model_validate(result)


@pytest.mark.parametrize(
    ("said", "has_tools", "why"),
    [
        ({"capabilities": []}, False, f"capabilities: {NO_OBJECT}ServerCapabilities"),
        ({"capabilities": None}, False, f"capabilities: {NO_OBJECT}"),
        ({"capabilities": ["tools"]}, True, f"capabilities: {NO_OBJECT}"),
        ({"capabilities": {"tools": []}}, True, f"capabilities.tools: {NO_OBJECT}"),
        ({"capabilities": {"tools": [TOOL]}}, True, f"capabilities.tools: {NO_OBJECT}"),
        ({"capabilities": {"tools": True}}, True, f"capabilities.tools: {NO_OBJECT}"),
        ({"capabilities": {"tools": False}}, False, f"capabilities.tools: {NO_OBJECT}"),
        (
            {"capabilities": {"tools": {"listChanged": "?"}}},
            True,
            "capabilities.tools.listChanged: input should be a valid boolean",
        ),
        (
            {"capabilities": {"tools": {}, "logging": []}},
            True,
            "capabilities.logging: input should be a valid dictionary",
        ),
        (
            {"capabilities": {"tools": {}}, "serverInfo": {"name": 3}},
            True,
            "serverInfo.name: input should be a valid string",
        ),
        (
            {"capabilities": {"tools": {}}, "serverInfo": None},
            True,
            "serverInfo: input should be a valid dictionary",
        ),
        (
            {"capabilities": {"tools": {}}, "instructions": ["Do."]},
            True,
            "instructions: input should be a valid string",
        ),
    ],
)
def test_what_a_server_says_first(
    said: dict[str, Any], has_tools: bool, why: str
) -> None:
    result = {"protocolVersion": OLD, "serverInfo": SERVER, **said}
    assert mend_handshake(result)[0].startswith(why)
    taken = InitializeResult.model_validate(result)
    assert (taken.capabilities.tools is not None) is has_tools
    assert mend_handshake(result) == []


def test_members_of_the_handshake_that_are_missing() -> None:
    result: dict[str, Any] = {"protocolVersion": OLD}
    assert mend_handshake(result) == [
        "capabilities: field required",
        "serverInfo: field required",
    ]
    assert InitializeResult.model_validate(result).capabilities.tools is None


def test_a_version_that_is_none_is_for_the_sdk_to_refuse() -> None:
    result = {"protocolVersion": 3, "capabilities": {}, "serverInfo": SERVER}
    assert mend_handshake(result) == []
    assert result["protocolVersion"] == 3


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_block_of_an_unknown_kind_is_named_in_its_place(version: str) -> None:
    text = {"type": "text", "text": "a", "annotations": {"priority": 1}}
    odd = [{"type": "video", "url": "x"}, {"type": "image"}, "words", {"type": 3}]
    result: dict[str, Any] = {"content": [text, *odd]}
    mend_output(result, version)
    shown = [
        f"[{kind}: can't be shown]"
        for kind in ("video", "image", "something", "something")
    ]
    assert result["content"] == [
        text,
        *({"type": "text", "text": one} for one in shown),
    ]


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
def test_results_are_mended_where_it_is_clear_what_was_meant(
    result: dict[str, Any], mended: dict[str, Any]
) -> None:
    mend_output(result, OLD)
    expected = {"content": [], "isError": False} | mended
    assert result == expected
