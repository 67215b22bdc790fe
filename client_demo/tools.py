"""Functions as tools: their signature is the schema, their result the output.

    @tool
    async def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
        "Tells the weather."

A plain function (`def`) runs in a thread of its own, so it may block. This is the
boundary to the application's code: whatever a function raises becomes an error
result that the model reads.
"""

import inspect
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any, overload

import msgspec
from anyio import CapacityLimiter, from_thread, get_cancelled_exc_class, to_thread
from msgspec import UNSET, Struct, UnsetType

from client_demo.boundary import is_cancelled
from protocol.content import Tool
from protocol.control import ToolRequest
from protocol.tool_signature import UnusableToolError, inner, is_async, read

Handler = Callable[..., Any]
"""An async function, or a plain one."""


class Output(Struct, frozen=True, kw_only=True):
    """What a tool gave: text or JSON."""

    output: Any


class Fault(Struct, frozen=True, kw_only=True):
    """How a tool failed, for the model to read."""

    message: str


class ToolContext:
    """What a tool may know of its call; for a parameter with this annotation.

    Attributes:
        conversation: Which one it belongs to.
        turn: The turn that asked.
        call: The server's id of the call.
        name: What the model called.
        deadline_ms: How long the server waits for the result, from the request on.
        redelivered: It was asked for before, over a connection that went away.
    """

    def __init__(self, request: ToolRequest, progress: Callable[[], None]) -> None:
        self.conversation = request.conversation
        self.turn = request.turn
        self.call = request.call
        self.name = request.name
        self.deadline_ms = request.deadline_ms
        self.redelivered = request.redelivered
        self._progress = progress
        self._loop_thread = get_ident()

    def progress(self) -> None:
        """Says that the tool still works: its deadline begins anew.

        Up to the server's ceiling for one call. Void while there is no connection.
        """
        if get_ident() == self._loop_thread:
            self._progress()
        else:
            from_thread.run_sync(self._progress)


class ClientTool:
    """A tool that this client runs; `tool` makes it.

    Attributes:
        declaration: What the server and the model are told.
    """

    def __init__(
        self, handler: Handler, *, name: str | None, timeout_s: float | UnsetType | None
    ) -> None:
        self._handler = handler
        try:
            self._is_async = is_async(handler)
            self._signature = read(handler, ToolContext)
        except UnusableToolError as error:
            why = f"{handler!r} can't be a tool: {error}"
            raise UnusableToolError(why) from None
        function = inner(handler)
        self.declaration = Tool(
            name=name or function.__name__,
            description=inspect.getdoc(function) or "",
            parameters=self._signature.parameters,
            timeout_s=timeout_s,
        )

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.declaration.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function as if it were not a tool."""
        return self._handler(*args, **kwargs)

    async def run(self, arguments: Any, context: ToolContext) -> Output | Fault:
        """Runs it on the model's arguments; raises nothing but cancellation.

        A cancelled plain function is not waited for.
        """
        try:
            output = await self._call(self._signature.keywords(arguments, context))
            return Output(output=msgspec.to_builtins(output))
        except Exception as error:  # noqa: BLE001 (the boundary to the application)
            return Fault(message=f"{type(error).__name__}: {error}")
        except get_cancelled_exc_class():
            if is_cancelled():
                raise
            return Fault(message="what the tool waited for was cancelled")

    async def _call(self, named: dict[str, Any]) -> Any:
        if self._is_async:
            return await self._handler(**named)
        return await to_thread.run_sync(
            partial(self._handler, **named),
            abandon_on_cancel=True,
            limiter=CapacityLimiter(1),  # of its own: others may block for hours
        )


@overload
def tool(
    handler: Handler,
    /,
    *,
    name: str | None = None,
    timeout_s: float | UnsetType | None = UNSET,
) -> ClientTool: ...
@overload
def tool(
    *, name: str | None = None, timeout_s: float | UnsetType | None = UNSET
) -> Callable[[Handler], ClientTool]: ...
def tool(
    handler: Handler | None = None,
    /,
    *,
    name: str | None = None,
    timeout_s: float | UnsetType | None = UNSET,
) -> ClientTool | Callable[[Handler], ClientTool]:
    """Makes a tool of a function, as a decorator.

    Args:
        handler: Takes the arguments by name; annotated with types of JSON. A
            parameter of the type `ToolContext` is given by the client.
        name: None takes the function's.
        timeout_s: Seconds until the server gives a call up; None waits up to the
            server's ceiling; absent takes the server's default.

    Raises:
        UnusableToolError: The function can't be a tool; says why.
    """

    def make(handler: Handler) -> ClientTool:
        return ClientTool(handler, name=name, timeout_s=timeout_s)

    return make if handler is None else make(handler)
