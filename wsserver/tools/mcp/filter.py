"""Takes out of an MCP server's answers what the SDK would refuse all of them for.

The SDK takes a list of tools as a whole or not at all, and looks at members that
nobody here reads. So what it gets to see is each tool with nothing but what is read,
and without the tools that are wrong in that. What surrounds the tools, and results of
other kinds, are for `mending`. This stands between a transport and the SDK.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, Self, cast

from mcp.client import Transport
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse
from mcp.types.methods import validate_server_result
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from wsserver.tools.mcp.listing import LeftOut, shown
from wsserver.tools.mcp.mending import (
    complaint,
    mend_handshake,
    mend_list,
    mend_output,
    mend_tool,
)

_READ = ("name", "title", "description", "inputSchema")

Incoming = SessionMessage | Exception


class _Stream(Protocol):
    """What the SDK reads from."""

    async def receive(self) -> Incoming: ...
    async def aclose(self) -> None: ...
    async def __anext__(self) -> Incoming: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...


class ToolFilter:
    """Looks through the answers of one server.

    Attributes:
        version: Of the protocol, once it was agreed on; until then only what is said
            to agree on it is looked at.
        handshake_faults: What was wrong with that.
    """

    def __init__(self) -> None:
        self.version: str | None = None
        self.handshake_faults: list[str] = []
        self._left_out: list[LeftOut] = []
        self._faults: list[str] = []

    def take_left_out(self) -> tuple[list[LeftOut], list[str]]:
        """Returns what was taken out of lists, and what was wrong with these.

        Both since the last time.
        """
        taken = self._left_out, self._faults
        self._left_out, self._faults = [], []
        return taken

    @asynccontextmanager
    async def around(self, transport: Transport) -> AsyncGenerator[Any]:
        """Opens a transport whose lists of tools are sound."""
        async with transport as (incoming, outgoing):
            yield _Filtered(incoming, self._look), outgoing

    def _look(self, message: Incoming) -> None:
        if isinstance(message, Exception):
            return
        answer = message.message
        if isinstance(answer, JSONRPCResponse):
            self._look_at(answer.result)

    def _look_at(self, result: dict[str, Any]) -> None:
        # No other results that are read have members of these names.
        match result, self.version:
            case {"protocolVersion": _}, None:
                self.handshake_faults = mend_handshake(result)
            case _, None:
                pass
            case {"tools": _}, version:
                self._faults += mend_list(result, version)
                result["tools"] = self._sound(result, version)
            case {"content": _} | {"structuredContent": _}, version:
                mend_output(result, version)
            case _:
                pass

    def _sound(self, result: dict[str, Any], version: str) -> list[Any]:
        kept: list[Any] = []
        for position, tool in enumerate(result["tools"]):
            if isinstance(tool, dict):
                members = cast("dict[str, Any]", tool)
                bare = {name: members[name] for name in _READ if name in members}
                name = members.get("name")
                tool_faults = mend_tool(bare)
            else:
                bare, name, tool_faults = tool, None, []
            why = _tool_fault({**result, "tools": [bare]}, version)
            if why is None:
                kept.append(bare)
                called = shown(name, position)
                self._faults += [f"{called}: {fault}" for fault in tool_faults]
            else:
                self._left_out.append(LeftOut(tool=shown(name, position), why=why))
        return kept


class _Filtered:
    """A stream whose messages are looked at before they are read."""

    def __init__(self, stream: _Stream, look: Callable[[Incoming], None]) -> None:
        self._stream = stream
        self._look = look

    @property
    def last_context(self) -> Any:
        """What the SDK's own streams know of a message's sender."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        message = await self._stream.receive()
        self._look(message)
        return message

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        message = await self._stream.__anext__()
        self._look(message)
        return message

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _tool_fault(result: dict[str, Any], version: str) -> str | None:
    """Says what is wrong with the one tool of a result; None if nothing is."""
    try:
        validate_server_result("tools/list", version, result)
    except ValidationError as error:
        for wrong in error.errors(include_url=False, include_input=False):
            match wrong["loc"]:
                case ("tools", 0, *path):
                    where = ".".join(map(str, path))
                    return f"{where}: {complaint(wrong)}" if where else complaint(wrong)
                case _:
                    pass  # It is wrong with any tool, which is for the SDK to say.
        return None
    if version in MODERN_PROTOCOL_VERSIONS:
        # The SDK would leave it out by itself, without a word to us.
        return find_invalid_x_mcp_header(result["tools"][0]["inputSchema"])
    return None
