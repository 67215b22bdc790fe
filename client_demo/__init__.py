"""A Python client of wsserver, and the programs that come with it."""

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
