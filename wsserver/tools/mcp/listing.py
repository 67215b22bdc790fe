"""What models are told of the tools that an MCP server lists, and what is left out.

Pure but for giving others a turn. A tool that no model can be told of takes none of
the others with it; each says why it was left out.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import anyio.lowlevel
import msgspec
from msgspec import Struct, field

from protocol.content import Tool
from wsserver.engine.schemas import schema_error
from wsserver.tools.mcp.settings import McpSettings

MOST_TOOLS = 512
MOST_TOOL_BYTES = 65_536
"""What is told the model of one tool; one that takes more is left out."""

_MOST_NAME = 64


class Listed(Struct, frozen=True, kw_only=True):
    """A tool as the server lists it."""

    name: str
    description: str
    parameters: dict[str, Any]


class LeftOut(Struct, frozen=True, kw_only=True):
    """A tool that is not offered.

    Attributes:
        tool: The server's name for it, cut; `#3` for the third where it has none.
        why: For whoever runs the server.
    """

    tool: str
    why: str


class Listing(Struct, frozen=True, kw_only=True):
    """All that a server lists.

    Attributes:
        tools: Those that can be read.
        left_out: Those that can't.
        faults: What is wrong with the list itself, or with what the server said
            before; each for whoever runs the server.
    """

    tools: Sequence[Listed]
    left_out: Sequence[LeftOut] = ()
    faults: Sequence[str] = ()


class Offer(Struct, frozen=True, kw_only=True):
    """What models are told.

    Attributes:
        tools: By the names that models know them by.
        own_names: The server's names for them.
        left_out: What is not among them, though it was asked for.
    """

    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    own_names: dict[str, str] = field(default_factory=dict[str, str])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])


async def offer(listing: Listing, settings: McpSettings) -> Offer:
    """Returns what models are told of a listing."""
    made = Offer()
    made.left_out.extend(one for one in listing.left_out if _wanted(one.tool, settings))
    for listed in listing.tools:
        if _wanted(listed.name, settings):
            _add(listed, settings, made)
            # There may be many, each with a schema to be looked through.
            await anyio.lowlevel.checkpoint()
    return made


def shown(name: object, position: int) -> str:
    """Returns a tool's name for the log, or its place in the list from 0 as `#1`."""
    return name[:_MOST_NAME] if isinstance(name, str) and name else f"#{position + 1}"


def _wanted(name: str, settings: McpSettings) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in settings.only)


def _add(listed: Listed, settings: McpSettings, made: Offer) -> None:
    tool = Tool(
        name=settings.prefix + re.sub(r"[^A-Za-z0-9_-]", "_", listed.name),
        description=listed.description,
        parameters=listed.parameters,
        timeout_s=settings.timeout_seconds,
    )
    why = _fault(tool, listed, made)
    if why is None:
        made.tools[tool.name] = tool
        made.own_names[tool.name] = listed.name
    else:
        name = listed.name[:_MOST_NAME]
        made.left_out.append(LeftOut(tool=name, why=why))


def _fault(tool: Tool, listed: Listed, made: Offer) -> str | None:
    """Says why no model can be told of a tool; None when it can."""
    if not listed.name:
        return "it has no name"
    if len(tool.name) > _MOST_NAME:
        return f"with the prefix its name is longer than {_MOST_NAME} characters"
    if tool.name in made.tools:
        return f"{made.own_names[tool.name]!r} has the same name for models"
    if len(made.tools) >= MOST_TOOLS:
        return f"there are more than {MOST_TOOLS} tools"
    size = len(msgspec.json.encode(tool))
    if size > MOST_TOOL_BYTES:
        return f"it takes {size} bytes; {MOST_TOOL_BYTES} are allowed"
    error = schema_error(listed.parameters)
    return None if error is None else f"inputSchema is no JSON Schema: {error}"
