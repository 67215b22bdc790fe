"""Frames from client to server."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import force_setattr

from protocol.content import ClientInfo, Config, Content, ToolName
from protocol.ids import MAX_SEQ, Id, Seq

Cursor = Annotated[
    Any,
    Meta(
        description="The last number that the client has, 0 for none.",
        extra_json_schema={
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MAX_SEQ,
        },
    ),
]
MAX_DELAY_MS = 10_000
"""The longest that text may be gathered."""

Policy = Literal["queue", "interrupt", "steer", "reject"]
Keep = Literal["seen", "sent", "generated", "none"]


class Frame(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """The base of all frames from a client."""


class Command(Frame, frozen=True, kw_only=True, omit_defaults=True):
    """A frame that gets exactly one `reply`, with `re` equal to its id.

    Attributes:
        id: Its own, for its principal and conversation: the same again, with the
            same content, is applied once and gets the first reply again.
    """

    id: Id


class Hello(Frame, frozen=True, kw_only=True, omit_defaults=True, tag="hello"):
    """The first frame of a connection.

    Attributes:
        protocol: The version of the protocol that the client speaks.
        token: Credentials, where the handshake had none.
        client: For the server's log.
    """

    protocol: int
    token: str | None = None
    client: ClientInfo | None = None


class Open(Command, frozen=True, kw_only=True, omit_defaults=True, tag="open"):
    """Attaches this connection to a conversation.

    Attributes:
        conversation: Absent makes a new one. A name of one's own that is not
            yet in use makes it, which is safe to send again.
        epoch: With `after`: the epoch the cursor belongs to.
        after: The client's cursor; with none everything is sent.
        config: Applied when the conversation is new, else ignored.
        handles: Names of the tools that this connection runs.
        view: `merged` joins deltas not yet sent; `frames` never does.
        include: Event types that are sent only on request.
        window_bytes: Stop sending while this many bytes are unacknowledged.
        max_delay_ms: Text may be gathered this long, and is cut between characters.
    """

    conversation: Id | None = None
    epoch: Id | None = None
    after: Cursor | UnsetType = UNSET
    config: Config | None = None
    handles: list[ToolName] | None = []
    view: Literal["merged", "frames"] | None = "merged"
    include: list[Literal["tool_delta"]] | None = []
    window_bytes: Annotated[int, Meta(ge=1024, le=2**31)] | None = None
    max_delay_ms: Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)] | None = None

    def __post_init__(self) -> None:
        """Makes null the same as absent, so that either is the same command."""
        if self.after is None:
            force_setattr(self, "after", UNSET)
        if self.handles is None:
            force_setattr(self, "handles", [])
        if self.view is None:
            force_setattr(self, "view", "merged")
        if self.include is None:
            force_setattr(self, "include", [])


class Configure(
    Command, frozen=True, kw_only=True, omit_defaults=True, tag="configure"
):
    """Changes the conversation's settings for the turns that start from here on."""

    conversation: Id
    config: Config


class Send(Command, frozen=True, kw_only=True, omit_defaults=True, tag="send"):
    """Says something to the model.

    Attributes:
        content: Text, or parts of text and images.
        policy: What to do while a turn runs.
        seen_seq: With policy `interrupt`: the last number the user saw.
        on_disconnect: Overrides the conversation's `detach` for this turn:
            `continue` (never abandoned) or `cancel` (at once).
        metadata: The client's own; kept with the message and shown to all.
    """

    conversation: Id
    content: Content
    policy: Policy | None = "queue"
    seen_seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)] | None = None
    on_disconnect: Literal["continue", "cancel"] | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Makes null the same as absent, so that either is the same command."""
        if self.policy is None:
            force_setattr(self, "policy", "queue")


class Interrupt(
    Command, frozen=True, kw_only=True, omit_defaults=True, tag="interrupt"
):
    """Stops a turn, or takes a send back that has not started.

    Attributes:
        turn: Which turn; with neither `turn` nor `send`: the one that runs.
        send: The id of a send.
        seen_seq: The last number the user saw.
        keep: Which text stays in the history.
    """

    conversation: Id
    turn: Seq | None = None
    send: Id | None = None
    seen_seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)] | None = None
    keep: Keep | None = None


class ToolFault(Struct, frozen=True, kw_only=True):
    """How a tool failed."""

    message: str


class ToolResult(
    Command, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"
):
    """What a tool gave; exactly one of `output` and `error`."""

    conversation: Id
    call: Id
    output: Any | UnsetType = UNSET
    error: ToolFault | None = None


class ToolProgress(
    Frame, frozen=True, kw_only=True, omit_defaults=True, tag="tool_progress"
):
    """The tool still runs; extends its deadline, up to the ceiling."""

    conversation: Id
    call: Id


class Fork(Command, frozen=True, kw_only=True, omit_defaults=True, tag="fork"):
    """Makes a new conversation with the log up to the end of a turn.

    Attributes:
        through: A number in the last turn that is taken along.
        new: The new conversation's id.
    """

    conversation: Id
    through: Annotated[int, Meta(ge=0, le=MAX_SEQ)]
    new: Id | None = None


class Ack(Frame, frozen=True, kw_only=True, omit_defaults=True, tag="ack"):
    """Everything up to `seq` was taken; opens the window of `window_bytes`."""

    conversation: Id
    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)]


ACK_COST = 0.1
"""What the server counts an `ack` as; everything else is one frame.

A client may acknowledge each frame it gets; the server takes an `ack` that comes too
early too, since a window may wait for it.
"""


class Close(Command, frozen=True, kw_only=True, omit_defaults=True, tag="close"):
    """Detaches this connection; a running turn goes on."""

    conversation: Id


class Delete(Command, frozen=True, kw_only=True, omit_defaults=True, tag="delete"):
    """Removes the conversation from the store.

    Attributes:
        conversation: Which one.
        epoch: The epoch that the client knows of it. What was made anew under the name
            has another one, and stays.
    """

    conversation: Id
    epoch: Id | None = None


class Refresh(Command, frozen=True, kw_only=True, omit_defaults=True, tag="refresh"):
    """Gives new credentials of the same principal."""

    token: str


class Ping(Frame, frozen=True, kw_only=True, omit_defaults=True, tag="ping"):
    """Asks for a `pong`; `t` comes back as it is."""

    t: Any | UnsetType = UNSET


ClientFrame = (
    Hello | Open | Configure | Send | Interrupt | ToolResult | ToolProgress | Fork
    | Ack | Close | Delete | Refresh | Ping
)  # fmt: skip
