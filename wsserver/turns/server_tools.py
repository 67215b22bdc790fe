"""Which of the server's own tools a turn may use: the seam, and the rule.

A conversation's `tools` is the whole list of what the model may call. An entry
without `parameters` that has the name of one of the server's tools stands for it;
an entry with `parameters` is the client's own, whatever its name. A conversation
that says nothing of tools gets the server's default.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import UNSET, structs

from protocol.content import Config, Tool
from wsserver.engine.server_tools import ToolContext


class ServerTools(Protocol):
    """The tools that the server runs itself."""

    def find(self, name: str) -> Tool | None:
        """Returns what a model is told of a tool; None when there is no such."""
        ...

    def names(self) -> Sequence[str]:
        """Returns the names of those that are known; which ones may change."""
        ...

    def default(self) -> Sequence[Tool]:
        """Returns the tools of conversations that say nothing of tools."""
        ...

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Runs a tool and returns its output, which JSON can hold.

        It is cancelled when the call is: by an interrupt or at its deadline.

        Raises:
            ToolError: There is no output; the message is for the model.
        """
        ...


class NoServerTools:
    """The server runs no tools."""

    def find(self, name: str) -> Tool | None:
        """Returns None."""
        del name

    def names(self) -> Sequence[str]:
        """Returns nothing."""
        return ()

    def default(self) -> Sequence[Tool]:
        """Returns nothing."""
        return ()

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        """Is never called."""
        raise AssertionError(f"nobody was told of {name}: {arguments}, {context}")


def offered(config: Config, tools: ServerTools) -> tuple[Config, frozenset[str]]:
    """Returns the settings with the tools that the model is told of.

    Also returns the names of those that the server runs.
    """
    listed = config.tools
    if listed is UNSET or listed is None:
        known = {tool.name: tool for tool in tools.default()}
        served = frozenset(known)
    else:
        known = {tool.name: tool for tool in listed}
        own = {
            name: _joined(tool, found)
            for name, tool in known.items()
            if tool.parameters is None and (found := tools.find(name)) is not None
        }
        known |= own
        served = frozenset(own)
    if not served:
        return config, served
    return structs.replace(config, tools=list(known.values())), served


def _joined(entry: Tool, own: Tool) -> Tool:
    """Returns the server's tool, with what the conversation says of it instead."""
    return Tool(
        name=entry.name,
        description=entry.description or own.description,
        parameters=own.parameters,
        timeout_s=own.timeout_s if entry.timeout_s is UNSET else entry.timeout_s,
    )
