"""What the client state machine tells the application: one closed union.

Events of conversations and most control frames are passed on as they came;
the structs here say what no single frame says. The machine that emits them is
`protocol.client.machine`.
"""

from typing import Literal

from msgspec import Struct

from protocol.commands import Command
from protocol.content import ErrorBody
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ErrorFrame,
    Goaway,
    Reply,
    ToolRequest,
    Waiting,
    Welcome,
)
from protocol.events import LogEvent

ResetReason = Literal["expired", "seq_ahead", "epoch_changed"]


class Cursor(Struct, frozen=True, kw_only=True):
    """Everything of `conversation` up to and including `last` is there.

    Attributes:
        conversation: Whose log it is a position in.
        epoch: What the server calls the log's unbroken life.
        last: The highest number that was taken; 0 for none.
    """

    conversation: str
    epoch: str
    last: int


class Connected(Struct, frozen=True, kw_only=True):
    """The server said welcome; what is held goes out now.

    Attributes:
        resumed: There was a connection before this one.
    """

    welcome: Welcome
    resumed: bool


class Disconnected(Struct, frozen=True, kw_only=True):
    """The connection is gone; the next attempt is due later.

    Attributes:
        code: The close code; None where no close frame came.
        retry_in_seconds: How long until the next attempt.
    """

    code: int | None
    retry_in_seconds: float


class Stopped(Struct, frozen=True, kw_only=True):
    """The connection is gone and reconnecting would fail alike: the end.

    Attributes:
        code: The close code.
        error: What the server said last that belongs to no command.
    """

    code: int
    error: ErrorFrame | None


class DropConnection(Struct, frozen=True, kw_only=True):
    """The driver must drop the transport and report that it is gone.

    Attributes:
        why: `silent`: nothing came for 2.5 heartbeats. `no_welcome`: `hello`
            was not answered. `gap`: opening again did not close a gap.
    """

    why: Literal["silent", "no_welcome", "gap"]


class Replied(Struct, frozen=True, kw_only=True):
    """A command is settled, exactly once.

    Attributes:
        command: As it was first sent; `command.id` is what the call returned.
        reply: The server's answer, or the machine's own where the command can't
            be sent at all (`too_large`) or needs no sending (`close` of what a
            lost connection closed).
    """

    command: Command
    reply: Reply


class Reset(Struct, frozen=True, kw_only=True):
    """The application drops its state of the conversation: all comes again.

    Emitted before the first of the new events.

    Attributes:
        cursor: Where the new events begin: right after its `last`.
        reason: Why the old cursor was void.
    """

    cursor: Cursor
    reason: ResetReason


class Lost(Struct, frozen=True, kw_only=True):
    """A conversation is open no more, and is not opened again by itself.

    Attributes:
        error: Why: it could not be opened again after a reconnect, or somebody
            else deleted it (`conversation_not_found`). Commands for one that was
            deleted fail with it too.
    """

    conversation: str
    error: ErrorBody


ClientEvent = (
    LogEvent | CaughtUp | Waiting | ToolRequest | Goaway | AuthExpiring | ErrorFrame
    | Connected | Disconnected | Stopped | DropConnection | Replied | Reset | Lost
)  # fmt: skip
