"""Numbered events: what a conversation's log is made of, server to client."""

from typing import Any, Literal

from msgspec import Struct

from protocol.content import Config, Content, TextProof, Timing
from protocol.ids import Id, Ms, Seq, Timestamp

Status = Literal["completed", "interrupted", "incomplete", "failed"]
Reason = Literal[
    "by_client", "abandoned", "superseded",
    "max_output_tokens", "content_filter", "upstream_truncated", "upstream_stalled",
    "server_restarted", "server_shutdown", "turn_timeout",
]  # fmt: skip
ToolStatus = Literal["ok", "error", "timeout", "cancelled", "invalid"]


class Event(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """The base of all events.

    Attributes:
        conversation: Whose log it is in.
        seq: Its number, contiguous from 1.
    """

    conversation: Id
    seq: Seq


class TurnEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a turn; `turn` is the number of the turn's `start`."""

    turn: Seq


class ConfigEvent(Event, frozen=True, kw_only=True, omit_defaults=True, tag="config"):
    """The conversation's whole settings from here on."""

    config: Config


class MessageEvent(Event, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    """A user's message is in the log.

    Attributes:
        id: The id of the `send`.
        by: The principal.
        steers: The turn that it joins at the next model call; if that turn ends
            first it is simply the next message.
    """

    id: Id
    role: Literal["user"]
    content: Content
    by: str
    at: Timestamp
    metadata: dict[str, Any] | None = None
    steers: Seq | None = None


class StartEvent(TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="start"):
    """A turn begins; its `turn` equals its `seq`."""

    message: Seq
    model: str
    request_id: str
    at: Timestamp


class TakeoverEvent(
    TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="takeover"
):
    """Another model answers from here on than the turn said before.

    Attributes:
        model: Its name.
        code: Why the one before it does not: an error's code; absent where the
            first choice answers again.
    """

    model: str
    code: str | None = None


class TextEvent(TurnEvent, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of text; stands for all numbers `first ... seq` when merged."""

    first: Seq | None = None
    text: str


class DeltaEvent(TextEvent, frozen=True, kw_only=True, omit_defaults=True, tag="delta"):
    """A piece of the answer."""


class ReasoningEvent(
    TextEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reasoning"
):
    """A piece of the model's thinking, never part of the answer."""


class RefusalEvent(
    TextEvent, frozen=True, kw_only=True, omit_defaults=True, tag="refusal"
):
    """A piece of the model's refusal."""


class ToolDeltaEvent(
    TextEvent, frozen=True, kw_only=True, omit_defaults=True, tag="tool_delta"
):
    """A piece of a call's arguments as they stream; only on request."""

    call: Id
    name: str


class ToolCallEvent(
    TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"
):
    """A complete and valid call.

    Attributes:
        call: The server's own id of the call.
        arguments: The arguments as JSON.
        batch: Which model call of the turn asked for it, from 0.
        index: Its place in that batch, from 0.
        deadline_at: When it counts as timed out.
        upstream_id: The id that the model's history keeps.
    """

    call: Id
    name: str
    arguments: Any
    batch: int
    index: int
    deadline_at: Timestamp
    upstream_id: str | None = None


class InvalidCall(Struct, frozen=True, kw_only=True):
    """A call that was never shown as one to run.

    Attributes:
        arguments: The text the model wrote for them.
    """

    name: str
    arguments: str
    batch: int
    index: int
    upstream_id: str


class ToolResultEvent(
    TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"
):
    """A call is settled; exactly once per call.

    Attributes:
        output: What the tool gave, or a note for the model.
        by: The principal whose client ran it, or `server`.
        invalid: With status `invalid`: the call, for which there was no
            `tool_call`.
    """

    call: Id
    status: ToolStatus
    output: Any
    by: str
    invalid: InvalidCall | None = None


class UsageEvent(TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="usage"):
    """What the turn cost; exactly once per turn."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    estimated: bool
    model_calls: int


class TurnErrorEvent(
    TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="error"
):
    """Why a turn failed; precedes its `done`."""

    code: str
    message: str
    retryable: bool
    retry_after_ms: Ms | None = None


class CutEvent(TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="cut"):
    """Answer text of the turn after `keep_through` is not part of the history.

    Attributes:
        keep_through: The last number whose text stays.
        by: The principal who cut it, or `server`.
        text: Proves the text that stays; a client whose frames were merged
            cuts its copy to `text.bytes`.
    """

    keep_through: Seq
    by: str
    text: TextProof


class SkipEvent(Event, frozen=True, kw_only=True, omit_defaults=True, tag="skip"):
    """The numbers `first ... seq` hold nothing for this client."""

    first: Seq | None = None


class DoneEvent(TurnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="done"):
    """The only terminal event of a turn; nothing of it follows but `cut`.

    Attributes:
        reason: Why it was interrupted or incomplete.
        finish_reason: The upstream's own word, if it gave one.
        text: Proves the kept answer text.
    """

    status: Status
    reason: Reason | None = None
    finish_reason: str | None = None
    text: TextProof
    timing: Timing


LogEvent = (
    ConfigEvent | MessageEvent | StartEvent | TakeoverEvent | DeltaEvent
    | ReasoningEvent | RefusalEvent | ToolDeltaEvent | ToolCallEvent
    | ToolResultEvent | UsageEvent | TurnErrorEvent | CutEvent | SkipEvent | DoneEvent
)  # fmt: skip


def first_seq(event: LogEvent | TextEvent) -> int:
    """Returns the first of the numbers that an event stands for."""
    if isinstance(event, (TextEvent, SkipEvent)) and event.first is not None:
        return event.first
    return event.seq
