"""All tools that the server runs, from wherever they come, under one name each."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

from protocol.content import Tool
from wsserver.engine.server_tools import ToolContext, ToolError


class Source(Protocol):
    """Where tools come from; which there are may change."""

    def names(self) -> Iterable[str]:
        """Returns the names of those that are known."""
        ...

    def find(self, name: str) -> Tool | None:
        """Returns what a model is told of a tool; None when there is no such."""
        ...

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Runs a tool that `find` has found, then or before.

        Raises:
            ToolError: It gave no result.
        """
        ...


class Registry:
    """The sources' tools; of two that share a name, that of the earlier source."""

    def __init__(self, sources: Sequence[Source], default: Sequence[str] = ()) -> None:
        """Takes the sources.

        Args:
            sources: Where tools come from.
            default: The tools of conversations that say nothing of tools: names, in
                which `*` stands for anything.
        """
        self._sources = sources
        self._default = default

    def find(self, name: str) -> Tool | None:
        """Returns what a model is told of a tool; None when there is no such."""
        for source in self._sources:
            found = source.find(name)
            if found is not None:
                return found
        return None

    def names(self) -> Sequence[str]:
        """Returns the names of those that are known; which ones may change."""
        return list(
            dict.fromkeys(n for source in self._sources for n in source.names())
        )

    def default(self) -> Sequence[Tool]:
        """Returns the tools of conversations that say nothing of tools."""
        chosen: dict[str, Tool | None] = {}
        for pattern in self._default:
            if "*" in pattern:
                found = [name for name in self.names() if fnmatchcase(name, pattern)]
                chosen |= {name: self.find(name) for name in found}
            else:
                chosen[pattern] = self.find(pattern)
        return [tool for tool in chosen.values() if tool is not None]

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Runs a tool.

        Raises:
            ToolError: It gave no result.
        """
        for source in self._sources:
            if source.find(name) is not None:
                return await source.run(name, arguments, context)
        raise ToolError(f"There is no tool {name!r} any more.")
