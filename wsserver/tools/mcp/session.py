"""Speaks to one MCP server through the official SDK; see `server` for the supervision.

Importing this module is slow: it brings the SDK.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.client import Client, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from wsserver import __version__
from wsserver.engine.server_tools import ToolError
from wsserver.engine.tools import SILENT_FAILURE
from wsserver.tools.mcp.content import output_of, text_of
from wsserver.tools.mcp.filter import ToolFilter
from wsserver.tools.mcp.http import http_client, http_transport
from wsserver.tools.mcp.listing import LeftOut, Listed, Listing
from wsserver.tools.mcp.server import News, NoAnswerError
from wsserver.tools.mcp.settings import McpSettings
from wsserver.tools.mcp.stdio import stdio_transport

# It logs what servers say, with tracebacks; what matters is logged here.
logging.getLogger("mcp").setLevel(logging.CRITICAL)  # noqa: TID251 - it is the SDK's

MOST_PAGES = 100
"""Of a list of tools; what comes after is left out."""

_LISTEN_AGAIN_SECONDS = 5.0

_LOST = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)


class McpSession:
    """A connection to a server.

    Attributes:
        ended: Whether it is known to be over.
    """

    def __init__(self, client: Client, filtering: ToolFilter) -> None:
        """Takes a client, and what looks through its lists of tools."""
        self.ended = False
        self._client = client
        self._filter = filtering

    async def tools(self) -> Listing:
        """Asks for the list of tools.

        Raises:
            MCPError: The server refuses.
        """
        faults = list(self._filter.handshake_faults)
        if self._client.server_capabilities.tools is None:
            return Listing(tools=(), faults=faults)
        found: list[Listed] = []
        left_out: list[LeftOut] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        self._filter.take_left_out()
        while len(cursors) < MOST_PAGES:
            cursors.add(cursor)
            try:
                page = await self._client.list_tools(cursor=cursor)
            except (MCPError, ValidationError) as error:
                if _is_lost(error, first=cursor is None):
                    raise
                faults.append(f"page {len(cursors)} is left out: {_said(error)}")
                break
            found += map(_listed, page.tools)
            wrong = self._filter.take_left_out()
            left_out += wrong[0]
            faults += wrong[1]
            cursor = page.next_cursor or None
            if cursor is None:
                break
            if cursor in cursors:
                faults.append("nextCursor: it leads back; what comes after is left out")
                break
        else:
            faults.append(
                f"there are more than {MOST_PAGES} pages; the rest is left out"
            )
        return Listing(tools=found, left_out=left_out, faults=faults)

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Callable[[], None]
    ) -> Any:
        """Calls a tool; when this is cancelled the server is told.

        Raises:
            ToolError: What the tool says is wrong.
            NoAnswerError: The tool said nothing.
        """

        async def on_progress(*_: Any, **__: Any) -> None:
            progress()

        params = types.CallToolRequestParams(name=name, arguments=arguments)
        try:
            # Not by `call_tool`: that checks the output against the server's schema,
            # in pure Python and in the event loop, which nobody here asks for.
            result = await self._client.session.send_request(
                types.CallToolRequest(params=params),
                types.CallToolResult,
                progress_callback=on_progress,
            )
        except MCPError as error:
            raise NoAnswerError(error.message) from error
        except ValidationError as error:
            raise NoAnswerError(_said(error)) from error
        except (RuntimeError, ValueError) as error:
            raise NoAnswerError(f"what it said is not valid: {error}") from error
        if result.is_error:
            raise ToolError(text_of(result.content) or SILENT_FAILURE)
        return output_of(result)


@asynccontextmanager
async def connect(settings: McpSettings, news: News) -> AsyncGenerator[McpSession]:
    """Opens a session with a server, over whichever transport it is had.

    Args:
        settings: Which server it is.
        news: Called when the session has ended and when the tools have changed.

    Raises:
        Exception: It can't be opened, or broke; whatever the SDK and its transports
            raise, in groups or alone.
    """

    def on_end() -> None:
        session.ended = True
        news()

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            news()

    async with AsyncExitStack() as stack:
        if settings.url is None:
            transport = stdio_transport(settings, on_end)
        else:
            http = await anyio.to_thread.run_sync(
                http_client, settings.name, settings.token
            )
            await stack.enter_async_context(http)
            transport = http_transport(settings.url, http)
        filtering = ToolFilter()
        client = Client(
            filtering.around(transport),
            message_handler=on_message,
            client_info=types.Implementation(name="wsserver", version=__version__),
            cache=None,
        )
        session = McpSession(client, filtering)
        await stack.enter_async_context(client)
        filtering.version = client.protocol_version
        tasks = await stack.enter_async_context(anyio.create_task_group())
        if _tells_of_changes(client):
            tasks.start_soon(_listen, client, news)
        yield session
        tasks.cancel_scope.cancel()


def _tells_of_changes(client: Client) -> bool:
    """Whether changes have to be subscribed to; older versions tell unasked."""
    tools = client.server_capabilities.tools
    told = tools is not None and bool(tools.list_changed)
    return told and client.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _listen(client: Client, news: News) -> None:
    """Passes changes on; what happened between two subscriptions counts as one."""
    while True:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                news()
                async for _ in changes:
                    news()
        except (MCPError, SubscriptionLost):
            news()
        await anyio.sleep(_LISTEN_AGAIN_SECONDS)


def _is_lost(error: MCPError | ValidationError, *, first: bool) -> bool:
    """Whether a page was not answered, or all pages are refused."""
    return isinstance(error, MCPError) and (first or error.code in _LOST)


def _said(error: MCPError | ValidationError) -> str:
    """Says what is wrong with an answer, without what it was."""
    if isinstance(error, MCPError):
        return error.message
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"what it said is not valid: {where}: {first['msg']}"


def _listed(tool: types.Tool) -> Listed:
    return Listed(
        name=tool.name,
        description=tool.description or tool.title or "",
        parameters=tool.input_schema,
    )
