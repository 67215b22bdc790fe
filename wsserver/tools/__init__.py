"""Tools that the server runs itself: Python callables, and those of MCP servers.

They know nothing of turns, conversations or the wire; `wsserver.turns.served_calls`
runs them. `ToolContext` and `ToolError` are for those who write tools.
"""

from wsserver.engine.server_tools import ToolContext, ToolError

__all__ = ["ToolContext", "ToolError"]
