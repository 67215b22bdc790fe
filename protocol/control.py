"""Control frames, server to client: about this connection, never numbered."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from protocol.content import ErrorBody, Limits, ServerInfo
from protocol.ids import Id, Ms, Seq, Timestamp

WaitingPhase = Literal["connecting", "waiting_first_token", "retry_wait"]


class Control(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """The base of all control frames."""


class Welcome(Control, frozen=True, kw_only=True, omit_defaults=True, tag="welcome"):
    """Answers `hello`.

    Attributes:
        connection: This connection's id, as in the server's log.
        heartbeat_ms: How often the server sends a `ping`.
        models: Names that a configuration may ask for; others may work too.
        features: Optional parts that this server has.
    """

    protocol: int
    connection: Id
    heartbeat_ms: Ms
    server: ServerInfo
    models: list[str]
    limits: Limits
    features: list[str]


class Reply(Control, frozen=True, kw_only=True, omit_defaults=True, tag="reply"):
    """Answers the command whose id is `re`; members depend on the command.

    Attributes:
        ok: Whether `outcome` or `error` is there.
        duplicate: The command had been applied before; this is its first reply.
        conversation: For `open`, `fork`: which conversation.
        epoch: For `open`: the log's epoch.
        head: For `open`: the last number.
        oldest: For `open`: the first number that is kept.
        turn: For `open`: the running turn; else the turn the command concerns.
        last_ids: For `open`: ids of the newest sends in the log, oldest first.
        reason: Why the cursor was `reset`.
        seq: For `send`, `configure`: the number of the event it became.
        keep_through: For `interrupt`: the last number whose text stays.
        server_tools: For `open`: names of the tools that the server runs itself, for
            a client that may `configure`; absent where there are none.
        stored: False where an `interrupt` is answered while the store does not take
            what came of it: a crash may take that back.
    """

    re: Id
    ok: bool
    outcome: str | None = None
    error: ErrorBody | None = None
    duplicate: bool | UnsetType = UNSET
    conversation: Id | None = None
    epoch: Id | None = None
    head: int | UnsetType = UNSET
    oldest: int | UnsetType = UNSET
    turn: Seq | None = None
    last_ids: list[Id] | UnsetType = UNSET
    reason: Literal["expired", "seq_ahead", "epoch_changed"] | None = None
    seq: Seq | None = None
    keep_through: int | UnsetType = UNSET
    server_tools: list[str] | UnsetType = UNSET
    stored: bool | UnsetType = UNSET


class ErrorFrame(Control, frozen=True, kw_only=True, omit_defaults=True, tag="error"):
    """A fault that belongs to no command; has no `conversation`.

    Attributes:
        gone: The conversation that somebody deleted, which is open here no more; no
            other fault has it.
    """

    code: str
    message: str
    retryable: bool
    retry_after_ms: Ms | None = None
    param: str | None = None
    gone: Id | None = None


class Pong(Control, frozen=True, kw_only=True, omit_defaults=True, tag="pong"):
    """Answers the client's `ping`."""

    t: Any | UnsetType = UNSET
    server_time: Timestamp


class CaughtUp(Control, frozen=True, kw_only=True, omit_defaults=True, tag="caught_up"):
    """The replay is over at `seq`; what follows is live."""

    conversation: Id
    seq: int


class Waiting(Control, frozen=True, kw_only=True, omit_defaults=True, tag="waiting"):
    """The turn has no token yet; sent each 10 s.

    Attributes:
        phase: `connecting`: the upstream has not answered the request.
            `waiting_first_token`: it has, and says nothing yet. `retry_wait`: it
            failed, and is asked again in a moment.
    """

    conversation: Id
    turn: Seq
    phase: WaitingPhase
    elapsed_ms: Ms


class ToolRequest(
    Control, frozen=True, kw_only=True, omit_defaults=True, tag="tool_request"
):
    """Asks exactly this connection to run a tool.

    Attributes:
        deadline_ms: How long it has from now.
        redelivered: It was asked of a connection before.
    """

    conversation: Id
    turn: Seq
    call: Id
    name: str
    arguments: Any
    deadline_ms: Ms
    redelivered: bool


class Goaway(Control, frozen=True, kw_only=True, omit_defaults=True, tag="goaway"):
    """The server goes away: finish, then reconnect after a while."""

    deadline_ms: Ms
    reconnect_after_ms: Ms
    reason: str


class AuthExpiring(
    Control, frozen=True, kw_only=True, omit_defaults=True, tag="auth_expiring"
):
    """The credentials run out; send `refresh`."""

    in_ms: Ms


class Heartbeat(Control, frozen=True, kw_only=True, omit_defaults=True, tag="ping"):
    """A sign of life; `heads` lets a client see that it missed something."""

    t: Ms
    heads: dict[str, int]


ControlFrame = (
    Welcome | Reply | ErrorFrame | Pong | CaughtUp | Waiting | ToolRequest | Goaway
    | AuthExpiring | Heartbeat
)  # fmt: skip
