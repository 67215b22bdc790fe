"""Tools that are Python callables of this process.

An async callable runs in the event loop and must not block it; any other runs in a
thread. What they take is decoded strictly by their type hints; what they return is
made JSON. Whatever they raise stays theirs.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs

from protocol.content import Tool, ToolName
from protocol.tool_signature import (
    Signature,
    UnusableToolError,
    inner,
    is_async,
    read,
)
from wsserver.engine.server_tools import ToolContext, ToolError
from wsserver.tools.threads import Threads, in_loop

MOST_THREADS = 32
"""How many tools that are not async run at a time; more of them wait."""


class PythonTool:
    """One callable.

    Attributes:
        tool: What the model is told.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        description: str | None = None,
        timeout_seconds: float | UnsetType = UNSET,
    ) -> None:
        """Reads what the callable takes.

        Args:
            name: What the model calls it.
            function: Takes and returns what JSON can hold.
            description: For the model; None for the docstring.
            timeout_seconds: For one call; unset for the server's default.

        Raises:
            UnusableToolError: The callable can't be a tool.
        """
        try:
            msgspec.convert(name, ToolName)
        except msgspec.ValidationError:
            raise UnusableToolError(
                f"{name!r} is no name of a tool: 1 to 64 of A-Z a-z 0-9 _ . -"
            ) from None
        self._function = function
        self._is_async = is_async(function)
        self._signature: Signature = read(function, ToolContext)
        self.tool = Tool(
            name=name,
            description=description or inspect.getdoc(inner(function)) or "",
            parameters=self._signature.parameters,
            timeout_s=timeout_seconds,
        )

    async def run(self, threads: Threads, arguments: Any, context: ToolContext) -> Any:
        """Runs it; a callable that is not async runs in one of `threads`.

        Raises:
            ToolError: The arguments or the output are of no use.
            Exception: Whatever the callable raises.
        """
        if not self._is_async:
            context = structs.replace(context, progress=in_loop(context.progress))
        try:
            keywords = self._signature.keywords(arguments, context)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}") from None
        try:
            if self._is_async:
                return _plain(await self._function(**keywords))
            return await threads.run(lambda: _plain(self._function(**keywords)))
        except SystemExit as error:
            raise ToolError(f"The tool wanted to exit ({error}).") from error


class PythonTools:
    """The callables that are registered."""

    def __init__(self, tools: Mapping[str, PythonTool]) -> None:
        """Takes them by name."""
        self._tools = dict(tools)
        self._threads = Threads(MOST_THREADS)

    def names(self) -> Iterable[str]:
        """Returns their names."""
        return self._tools

    def find(self, name: str) -> Tool | None:
        """Returns what a model is told of a tool; None when there is no such."""
        found = self._tools.get(name)
        return None if found is None else found.tool

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Runs a tool.

        Raises:
            ToolError: It gave no result.
            Exception: Whatever the callable raises.
        """
        return await self._tools[name].run(self._threads, arguments, context)


def _plain(output: Any) -> Any:
    """Makes an output of what JSON can hold.

    Raises:
        ToolError: JSON can't hold it.
    """
    try:
        return msgspec.to_builtins(output, str_keys=True, enc_hook=_known)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"The tool's output can't be written as JSON: {error}"
        ) from None


def _known(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)  # pydantic
    if dump is not None:
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is no JSON type")
