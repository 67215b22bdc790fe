"""A Python client of wsserver, and the programs that come with it.

What is here is imported where it is used first: `python -m client_demo` imports this
before it can say what a Ctrl-C does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client_demo.chat import Chat
    from client_demo.client import Client, connect
    from client_demo.errors import (
        ClientError,
        CodedError,
        CommandError,
        ConversationResetError,
        IncompleteAnswerError,
        NotConnectedError,
        StoppedError,
        TurnError,
    )
    from client_demo.tools import ClientTool, ToolContext, tool
    from client_demo.turn import Turn

__all__ = [
    "Chat", "Client", "ClientError", "ClientTool", "CodedError", "CommandError",
    "ConversationResetError", "IncompleteAnswerError", "NotConnectedError",
    "StoppedError", "ToolContext", "Turn", "TurnError", "connect", "tool",
]  # fmt: skip

_MODULES = {
    "Chat": "chat",
    "Client": "client",
    "ClientError": "errors",
    "ClientTool": "tools",
    "CodedError": "errors",
    "CommandError": "errors",
    "ConversationResetError": "errors",
    "IncompleteAnswerError": "errors",
    "NotConnectedError": "errors",
    "StoppedError": "errors",
    "ToolContext": "tools",
    "Turn": "turn",
    "TurnError": "errors",
    "connect": "client",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
