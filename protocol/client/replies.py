"""Replies as the application gets them, where the server's own is not to be had.

The machine that gives them is `protocol.client.machine`.
"""

from typing import Literal

from msgspec.structs import replace

from protocol.commands import Command, Delete
from protocol.content import ErrorBody
from protocol.control import Reply


def done(command: Command, outcome: Literal["closed", "refreshed"]) -> Reply:
    """What the server would have said to a command that need not be sent."""
    return Reply(re=command.id, ok=True, outcome=outcome)


def refused(command: Command, error: ErrorBody) -> Reply:
    """What the server would have said to a command that must not be sent."""
    return Reply(re=command.id, ok=False, error=error)


def meant(command: Command, reply: Reply) -> Reply:
    """What a reply says to who gave the command.

    A `delete` that finds nothing has what it asked for: it was sent again after its
    reply was lost, or somebody else was faster.
    """
    match command, reply.error:
        case Delete(), ErrorBody(code="conversation_not_found"):
            return replace(reply, ok=True, outcome="deleted", error=None)
        case _:
            return reply
