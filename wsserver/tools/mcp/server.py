"""The tools of one MCP server, and the supervision of the connection to it.

The server may be down at the start, die, hang or change its tools; here it is
connected again and again, and asked for its tools anew. While it can't be reached
its tools answer with an error. What models are told of a list is for `listing`.
How the server is spoken to is for `session`, the only part that needs the `mcp`
package, which is slow to import and may not be there.
"""

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, Protocol, cast

import anyio
import anyio.to_thread
import structlog

from protocol.content import Tool
from wsserver.engine.server_tools import ToolContext, ToolError
from wsserver.foreign_code import stops
from wsserver.tools.mcp.listing import LeftOut, Listing, Offer, offer
from wsserver.tools.mcp.settings import McpSettings

CONNECT_SECONDS = 30.0
"""From the start of a server, or the first request, to the list of its tools."""

CHECK_SECONDS = 30.0
"""A server that does not list its tools within this time is connected anew."""

MOST_REPORTED = 50
"""Tools that are left out of one list, and named in the log; the rest is counted."""

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_MOST_REASON = 500

log = structlog.get_logger(__name__)


class NoAnswerError(ToolError):
    """There was no answer of the tool: the server, or the way to it, is at fault."""


class Session(Protocol):
    """A connection to a server.

    Attributes:
        ended: Whether it is known to be over.
    """

    ended: bool

    async def tools(self) -> Listing:
        """Asks for the list of tools.

        Raises:
            Exception: There is no answer, or it is of no use.
        """
        ...

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Callable[[], None]
    ) -> Any:
        """Calls a tool; when this is cancelled the server is told.

        Raises:
            ToolError: What the tool says is wrong.
            NoAnswerError: The tool said nothing.
        """
        ...


News = Callable[[], None]
Connect = Callable[[McpSettings, News], AbstractAsyncContextManager[Session]]
"""Opens a session, which tells of it when it ends and when its tools change."""


class _LostError(Exception):
    """The server has to be connected anew; the message says why."""


class McpServer:
    """One server's tools.

    Attributes:
        settings: Which server it is.
    """

    def __init__(self, settings: McpSettings, connect: Connect | None = None) -> None:
        """Connects nothing yet; see `run`.

        Args:
            settings: Which server it is.
            connect: Opens sessions; None for what the `mcp` package does.
        """
        self.settings = settings
        self._connect = connect or _connect
        self._session: Session | None = None
        self._offer = Offer()
        self._reported = frozenset[LeftOut | str]()
        self._was_listed = False
        self._news = anyio.Event()

    @property
    def connected(self) -> bool:
        """Whether it can be called, as far as is known."""
        return self._session is not None

    def names(self) -> Iterable[str]:
        """Returns the names of its tools, as far as they are known."""
        return self._offer.tools

    def find(self, name: str) -> Tool | None:
        """Returns what a model is told of a tool; None when there is no such.

        Before the tools are known, any name with the prefix is taken for one.
        """
        prefix = self.settings.prefix
        if not self._was_listed and prefix and name.startswith(prefix):
            return Tool(name=name, timeout_s=self.settings.timeout_seconds)
        return self._offer.tools.get(name)

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Calls a tool.

        Raises:
            ToolError: It gave no result.
        """
        session = self._session
        if session is None:
            raise ToolError(self._said("can't be reached at the moment"))
        own_name = self._offer.own_names.get(name)
        if own_name is None:
            raise ToolError(self._said(f"has no tool {name!r}"))
        if not isinstance(arguments, dict):
            raise ToolError("The arguments are no JSON object.")
        members = cast("dict[str, Any]", arguments)
        try:
            return await session.call(own_name, members, context.progress)
        except NoAnswerError as error:
            self._news.set()
            why = self.settings.hide(str(error))
            raise NoAnswerError(self._said(f"gave no answer ({why})")) from error
        except anyio.get_cancelled_exc_class():
            # It may hang; then it does not answer the next question either.
            self._news.set()
            raise

    async def supervise(self) -> None:
        """Keeps the server connected, until this is cancelled."""
        failures = 0
        last = ""
        while True:
            began = anyio.current_time()
            why = self.settings.hide(await self._serve())
            steady = anyio.current_time() - began >= _STEADY_SECONDS
            failures = 1 if steady else failures + 1
            delay = delay_seconds(failures)
            tell = log.warning if why != last else log.debug
            tell(
                "mcp_server_lost",
                server=self.settings.name,
                why=why,
                again_in_seconds=delay,
            )
            last = why
            await anyio.sleep(delay)

    async def _serve(self) -> str:
        """Connects, and attends to the session until it is over; returns why."""
        within = anyio.current_time() + CONNECT_SECONDS
        try:
            with anyio.CancelScope(deadline=within) as connecting:
                async with self._connect(self.settings, self._on_news) as session:
                    await self._list(session)
                    connecting.deadline = math.inf
                    self._session = session
                    try:
                        await self._attend(session)
                    finally:
                        self._session = None
        except BaseException as error:
            # The one boundary around the SDK.
            if not stops(error):
                raise
            return _reason(error)
        if connecting.cancelled_caught:
            return f"it was not ready after {CONNECT_SECONDS:g} s"
        return "the connection ended"

    async def _attend(self, session: Session) -> None:
        """Asks for the tools whenever something happened, until the session is over."""
        while not session.ended:
            await self._news.wait()
            self._news = anyio.Event()
            if not session.ended:
                with anyio.move_on_after(CHECK_SECONDS) as check:
                    await self._list(session)
                if check.cancelled_caught:
                    raise _LostError(f"it did not answer for {CHECK_SECONDS:g} s")
                await anyio.sleep(_PAUSE_SECONDS)

    def _on_news(self) -> None:
        self._news.set()

    async def _list(self, session: Session) -> None:
        listing = await session.tools()
        made = await offer(listing, self.settings)
        self._report(listing.faults, made.left_out)
        if not self._was_listed or made.own_names != self._offer.own_names:
            log.info(
                "mcp_tools",
                server=self.settings.name,
                tools=len(made.tools),
                left_out=len(made.left_out),
            )
        self._offer, self._was_listed = made, True

    def _report(self, faults: Sequence[str], left_out: Sequence[LeftOut]) -> None:
        """Logs what is wrong and what is left out, once for as long as it is."""
        named = list(dict.fromkeys([*faults, *left_out]))[:MOST_REPORTED]
        for one in named:
            if one in self._reported:
                continue
            if isinstance(one, str):
                why = self.settings.hide(one)
                log.warning("mcp_list_faulty", server=self.settings.name, why=why)
            else:
                log.warning(
                    "mcp_tool_left_out",
                    server=self.settings.name,
                    tool=one.tool,
                    why=one.why,
                )
        self._reported = frozenset(named)

    def _said(self, what: str) -> str:
        return f"The MCP server {self.settings.name!r} {what}."


def delay_seconds(failures: int) -> float:
    """Returns how long to wait before connecting again.

    Args:
        failures: How many connections in a row did not last, this one included.
    """
    doublings = min(max(failures - 1, 0), 10)
    return min(_FIRST_DELAY_SECONDS * 2**doublings, _LONGEST_DELAY_SECONDS)


def _reason(error: BaseException) -> str:
    """Says what went wrong first; task groups wrap what stops them."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    if isinstance(error, _LostError):
        return str(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _MOST_REASON else text[:_MOST_REASON] + "…"


@asynccontextmanager
async def _connect(settings: McpSettings, news: News) -> AsyncGenerator[Session]:
    module = await anyio.to_thread.run_sync(import_module, "wsserver.tools.mcp.session")
    connect: Connect = module.connect
    async with connect(settings, news) as session:
        yield session
