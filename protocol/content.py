"""What messages, settings and tools are made of."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import force_setattr

from protocol.ids import Id


class TextPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """A piece of text in a message."""

    text: str


class ImageUrl(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an image is: an `https:` or `data:` URL."""

    url: Annotated[
        str,
        Meta(
            pattern=r"^([Hh][Tt][Tt][Pp][Ss]:|[Dd][Aa][Tt][Aa]:)",
            description="an `https:` or `data:` URL",
        ),
    ]
    detail: str | None = None


class ImagePart(Struct, frozen=True, kw_only=True, tag_field="type", tag="image_url"):
    """An image in a message."""

    image_url: ImageUrl


Part = TextPart | ImagePart
Content = str | Annotated[list[Part], Meta(min_length=1, description="a list of parts")]

ToolName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,64}$(?!\n)",
        description="1 to 64 of A-Z a-z 0-9 _ . -",
    ),
]


class Tool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that the model may call and a client runs.

    Attributes:
        name: Unique in its configuration.
        description: Told to the model.
        parameters: The JSON Schema of the arguments object; absent takes any.
        timeout_s: Seconds until a call of it counts as timed out; absent takes
            the server's default, null waits (for a person's approval) up to the
            server's ceiling.
    """

    name: ToolName
    description: str | None = ""
    parameters: dict[str, Any] | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        """Makes a description of null the same as none."""
        if self.description is None:
            force_setattr(self, "description", "")


class NamedTool(Struct, frozen=True, kw_only=True):
    """Makes the model call this tool."""

    name: ToolName


ToolChoice = Literal["auto", "none", "required"] | NamedTool


class Detach(Struct, frozen=True, kw_only=True):
    """What a turn does when nobody is connected.

    Attributes:
        grace_s: Seconds it goes on; 0 stops at once, null never.
    """

    grace_s: Annotated[float, Meta(ge=0, le=604_800)] | None


LONGEST_MODEL = 256
"""Of a model's name, in characters."""


class Config(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of a conversation.

    In a command a member that is absent stays as it is and null takes it
    back; in the `config` event absent members are not set.

    Attributes:
        model: The model's name; with none the server's default.
        instructions: What the model is told before the conversation.
        tools: What the model may call.
        tool_choice: Whether it may, must or must not call a tool, or which.
        params: Further members of the request to the model (`temperature`, ...).
        response_schema: A JSON Schema that the answer has to fit.
        detach: What a turn does when nobody is connected.
    """

    model: Annotated[str, Meta(max_length=LONGEST_MODEL)] | UnsetType | None = UNSET
    instructions: str | UnsetType | None = UNSET
    tools: list[Tool] | UnsetType | None = UNSET
    tool_choice: ToolChoice | UnsetType | None = UNSET
    params: dict[str, Any] | UnsetType | None = UNSET
    response_schema: dict[str, Any] | UnsetType | None = UNSET
    detach: Detach | UnsetType | None = UNSET


class ClientInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who says hello, for the server's log."""

    name: Annotated[str, Meta(max_length=128)]
    version: Annotated[str, Meta(max_length=64)] | None = None


class ServerInfo(Struct, frozen=True, kw_only=True):
    """Who welcomes."""

    name: str
    version: str


class Limits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the server takes; announced in `welcome`. What is absent has no limit.

    Attributes:
        frame_bytes: The longest frame in either direction.
        conversations: Open conversations on one connection.
        active_turns: Running turns of one principal.
        queued: Waiting messages of one conversation.
        pending_tools: Tool calls of one turn, in all.
        tool_output_bytes: The longest output of a tool.
        idempotency_s: How long command ids are remembered at the least.
        depth: Lists and objects that may stand in each other.
        turn_bytes: The text of one turn.
        tool_rounds: Model calls that tools may cause in one turn.
        frames_per_second: Frames of one connection, on average.
        frames_burst: Frames of one connection at once.
        principal_frames_per_second: Frames of all connections of one principal, on
            average.
        principal_connections: Connections of one principal.
        principal_conversations: Open conversations on all connections of one
            principal.
        principal_stored_conversations: Conversations of one principal that are
            stored, open or not.
        address_connections: Connections from one address.
        max_delay_ms: The longest `max_delay_ms` of an `open`.
    """

    frame_bytes: int
    conversations: int
    active_turns: int
    queued: int
    pending_tools: int
    tool_output_bytes: int
    idempotency_s: int
    depth: int | None = None
    turn_bytes: int | None = None
    tool_rounds: int | None = None
    frames_per_second: int | None = None
    frames_burst: int | None = None
    principal_frames_per_second: int | None = None
    principal_connections: int | None = None
    principal_conversations: int | None = None
    principal_stored_conversations: int | None = None
    address_connections: int | None = None
    max_delay_ms: int | None = None


class TextProof(Struct, frozen=True, kw_only=True):
    """What proves a copy of a turn's kept answer text.

    Attributes:
        bytes: Its length in UTF-8.
        crc32: The CRC-32 of that, as an unsigned number.
    """

    bytes: int
    crc32: int


class Timing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a turn took, in milliseconds; a member that has no value is absent.

    Attributes:
        queue_ms: From the message in the log to the turn's start.
        upstream_ttft_ms: From the last request sent before the first token to it.
        ttft_ms: From the message in the log to the first non-empty fragment of
            content, reasoning, refusal or call.
        tpot_ms: Time per output token after the first.
        tokens_per_s: Output tokens per second after the first.
        tool_ms: Spent waiting for tools.
        total_ms: From the message in the log to the end.
        stop_ms: From an interrupt to the upstream connection closed.
    """

    queue_ms: float
    upstream_ttft_ms: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    tokens_per_s: float | None = None
    tool_ms: float | None = None
    total_ms: float
    stop_ms: float | None = None


class ErrorBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong and what can be done.

    Attributes:
        code: From the catalogue in `protocol.codes`.
        message: For a person: what was wrong and what to do.
        retryable: Whether sending the same again may succeed.
        retry_after_ms: The least wait before that.
        param: A JSON path to the member at fault, such as `$.config.model`.
    """

    code: str
    message: str
    retryable: bool
    retry_after_ms: int | None = None
    param: str | None = None


__all__ = [
    "ClientInfo", "Config", "Content", "Detach", "ErrorBody", "Id", "ImagePart",
    "ImageUrl", "Limits", "NamedTool", "Part", "ServerInfo", "TextPart", "TextProof",
    "Timing", "Tool", "ToolChoice", "ToolName",
]  # fmt: skip
