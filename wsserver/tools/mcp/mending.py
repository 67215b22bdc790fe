"""Makes of an MCP server's results what the SDK takes, where it is clear what was meant.

What it says first, then its lists of tools and what its tools say. The SDK takes each
of these as a whole or not at all. Where something has to be guessed or passed over, the
functions say what it was, for whoever runs the server.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp.types import CallToolResult
from mcp.types.methods import validate_server_result
from mcp.types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

_MOST_KIND = 64
_NO_NAME = "unknown"


def mend_handshake(result: dict[str, Any]) -> list[str]:
    """Mends the result of `initialize`; returns what was wrong."""
    faults: list[str] = []
    capabilities: Any = result.get("capabilities")
    for path, why in _faults("initialize", LATEST_HANDSHAKE_VERSION, result):
        match path:
            case ["capabilities"]:
                # PHP writes an empty object as `[]`; whatever else may mean tools.
                result["capabilities"] = {"tools": {}} if capabilities else {}
            case ["capabilities", name]:
                # Some put `true` there, or the tools themselves.
                capabilities[name] = None if capabilities[name] is False else {}
            case ["capabilities", name, member, *_]:
                capabilities[name][member] = None
            case ["serverInfo", *_]:
                result["serverInfo"] = {"name": _NO_NAME, "version": _NO_NAME}
            case [member, *_] if member in result and member != "protocolVersion":
                del result[member]
            case _:
                continue  # Nobody can say what was meant.
        faults.append(f"{'.'.join(path)}: {why}")
    return faults


def mend_list(result: dict[str, Any], version: str) -> list[str]:
    """Mends all of a list of tools but the tools; returns what was wrong.

    Args:
        result: Has `tools`, whatever that is; afterwards it is a list.
        version: Of the protocol.
    """
    faults: list[str] = []
    match result["tools"]:
        case [*_]:
            pass
        case {**tools}:
            result["tools"] = [_named(name, tool) for name, tool in tools.items()]
            faults.append("tools: an object instead of a list; its members are taken")
        case None:
            result["tools"] = []
            faults.append("tools: null instead of a list; taken for an empty one")
        case _:
            result["tools"] = []
            faults.append("tools: no list; taken for an empty one")
    for path, why in _faults("tools/list", version, {**result, "tools": []}):
        if path[0] in result:
            del result[path[0]]
            lost = "what comes after" if path[0] == "nextCursor" else "it"
            faults.append(f"{'.'.join(path)}: {why}; {lost} is left out")
    return faults


def mend_tool(tool: dict[str, Any]) -> list[str]:
    """Mends what a tool takes; returns what was wrong.

    Languages without a type for objects write an empty one as `[]`, others write null
    for what is not there. That arguments are an object goes without saying.
    """
    if "inputSchema" in tool and tool["inputSchema"] in (None, []):
        tool["inputSchema"] = {"type": "object"}
        return ["inputSchema: no object; taken for that of a tool without parameters"]
    if not isinstance(tool.get("inputSchema"), dict):
        return []
    schema = tool["inputSchema"] = dict(cast("dict[str, Any]", tool["inputSchema"]))
    faults: list[str] = []
    if schema.get("type") is None:
        schema["type"] = "object"
        faults.append("inputSchema.type: not there; taken for `object`")
    if "properties" in schema and schema["properties"] in (None, []):
        schema["properties"] = {}
        faults.append("inputSchema.properties: no object; taken for an empty one")
    if "required" in schema and schema["required"] is None:
        del schema["required"]
        faults.append("inputSchema.required: null; taken for not there")
    return faults


def mend_output(result: dict[str, Any], version: str) -> None:
    """Mends the result of a tool."""
    content: Any = result.get("content")
    if content is None:
        result["content"] = []
    if result.get("isError") is None:
        result["isError"] = False
    structured = result.get("structuredContent")
    is_old = version not in MODERN_PROTOCOL_VERSIONS
    if is_old and content and not isinstance(structured, dict):
        # Older versions have objects there, and the content says the same.
        result.pop("structuredContent", None)
    if isinstance(content, list):
        result["content"] = list(map(_shown, cast("list[Any]", content)))


def complaint(error: Mapping[str, Any]) -> str:
    """Returns what pydantic says is wrong, as the end of a sentence."""
    said: str = error["msg"]
    return said[:1].lower() + said[1:]


def _faults(
    method: str, version: str, result: Mapping[str, Any]
) -> list[tuple[list[str], str]]:
    """Returns where a result is wrong, and why."""
    try:
        validate_server_result(method, version, result)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
        return [(list(map(str, one["loc"])), complaint(one)) for one in wrong]
    return []


def _named(name: str, tool: Any) -> Any:
    """Returns a tool with the name it has in an object of tools."""
    if not isinstance(tool, dict):
        return tool
    return {"name": name, **cast("dict[str, Any]", tool)}


def _shown(block: Any) -> Any:
    """Returns a block of a tool's result, or what stands for one that is not known."""
    try:
        CallToolResult.model_validate({"content": [block]}, by_name=False)
    except ValidationError:
        members = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        kind = members.get("type")
        name = kind[:_MOST_KIND] if isinstance(kind, str) else "something"
        return {"type": "text", "text": f"[{name}: can't be shown]"}
    return block
