"""What the turn machine asks of its runner, as values."""

from typing import Any

from msgspec import Struct

from protocol.control import WaitingPhase
from protocol.events import Event


class AppendText(Struct, frozen=True, gc=False):
    """Append text of this kind (`delta`, `reasoning`, ...) to the log.

    Attributes:
        attrs: Encoded members that stand before the text (of a `tool_delta`).
    """

    kind: str
    text: str
    attrs: bytes = b""


class Append(Struct, frozen=True):
    """Append an event of the turn to the log."""

    event: type[Event]
    members: dict[str, Any]


class AppendDone(Struct, frozen=True):
    """Append the turn's `done`, with the proof of the kept text; nothing follows."""

    members: dict[str, Any]


class AskTool(Struct, frozen=True):
    """Ask a connection to run the open call."""

    call: str


class ShowWaiting(Struct, frozen=True):
    """Tell all viewers that there is no token yet."""

    phase: WaitingPhase
    elapsed_ms: int


class CallModel(Struct, frozen=True):
    """Fold the prompt and call the model."""


class CloseModel(Struct, frozen=True):
    """Close the model call under way; tell the machine once it is closed."""


HostAction = AppendText | Append | AppendDone | AskTool | ShowWaiting
"""What concerns the conversation; the rest concerns the provider."""

Action = HostAction | CallModel | CloseModel
