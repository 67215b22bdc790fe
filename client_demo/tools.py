"""Async functions as tools: their signature is the schema, their result the output.

    @tool
    async def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
        "Tells the weather."

This is the boundary to the application's code: whatever a function raises
becomes an error result that the model reads.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints, overload

import msgspec
from msgspec import NODEFAULT, UNSET, Struct, UnsetType

from protocol.content import Tool

Handler = Callable[..., Awaitable[Any]]


class Output(Struct, frozen=True, kw_only=True):
    """What a tool gave: text or JSON."""

    output: Any


class Fault(Struct, frozen=True, kw_only=True):
    """How a tool failed, for the model to read."""

    message: str


class ClientTool:
    """A tool that this client runs.

    Attributes:
        declaration: What the server and the model are told.
    """

    def __init__(
        self, handler: Handler, *, name: str | None, timeout_s: float | UnsetType | None
    ) -> None:
        self._handler = handler
        self._arguments = _arguments_of(handler)
        self.declaration = Tool(
            name=name or handler.__name__,
            description=inspect.getdoc(handler) or "",
            parameters=_schema_of(self._arguments),
            timeout_s=timeout_s,
        )

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.declaration.name

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function as if it were not a tool."""
        return await self._handler(*args, **kwargs)

    async def run(self, arguments: Any) -> Output | Fault:
        """Runs it on the model's arguments; raises nothing but cancellation."""
        try:
            given = msgspec.convert(arguments, self._arguments)
            output = await self._handler(**msgspec.structs.asdict(given))
            return Output(output=msgspec.to_builtins(output))
        except Exception as error:  # noqa: BLE001 (the boundary to the application)
            return Fault(message=f"{type(error).__name__}: {error}")


@overload
def tool(handler: Handler, /) -> ClientTool: ...
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
    """Makes a tool of an async function, as a decorator.

    Args:
        handler: Takes the arguments by name; annotated with types of JSON.
        name: None takes the function's.
        timeout_s: Seconds until the server gives a call up; None waits up to the
            server's ceiling; absent takes the server's default.
    """
    if handler is not None:
        return ClientTool(handler, name=name, timeout_s=timeout_s)
    return lambda made: ClientTool(made, name=name, timeout_s=timeout_s)


def _arguments_of(handler: Handler) -> type[Struct]:
    hints = get_type_hints(handler, include_extras=True)
    fields = [
        (
            name,
            hints.get(name, Any),
            NODEFAULT if parameter.default is parameter.empty else parameter.default,
        )
        for name, parameter in inspect.signature(handler).parameters.items()
    ]
    return msgspec.defstruct("Arguments", fields, kw_only=True)


def _schema_of(arguments: type[Struct]) -> dict[str, Any]:
    # Upstreams want an object at the root, where msgspec puts a reference.
    _, shared = msgspec.json.schema_components(
        [arguments], ref_template="#/$defs/{name}"
    )
    root = shared.pop("Arguments")
    del root["title"]
    return root | ({"$defs": shared} if shared else {})
