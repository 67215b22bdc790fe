"""What a tool that the server runs is given, and how it fails.

These values are the seam between the tools (`wsserver.tools`, which know nothing of
turns) and the turns that run them (`wsserver.turns.served_calls`).
"""

from collections.abc import Callable

from msgspec import Struct


class ToolContext(Struct, frozen=True, kw_only=True):
    """For whom a tool runs.

    Attributes:
        conversation: The conversation's id, as its clients know it.
        principal: Who sent the message that the turn answers.
        call: The call's id; no other call of the conversation has it.
        progress: Puts the call's deadline off, as a client's `tool_progress` does.
    """

    conversation: str
    principal: str
    call: str
    progress: Callable[[], None]


class ToolError(Exception):
    """A tool gave no result; the message is what the model is told."""
