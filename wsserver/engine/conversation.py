"""What must be known of a conversation to go on with it, without its log.

The state is a fold over the log, kept beside it so that loading a conversation
reads one row. It is written in the same commit as the events it follows from.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from protocol.content import Config, Tool
from protocol.events import Reason

LAST_IDS = 32


class Waiting(Struct, kw_only=True, omit_defaults=True):
    """A message that waits for its turn.

    Attributes:
        seq: The number of its event.
        id: The id of the `send`.
        by: The principal.
        at: When it was accepted, in seconds since the epoch.
        first: Whether it goes before those that just wait: it has interrupted.
        steers: The running turn that it wants to join, or 0.
        on_disconnect: As in the `send`.
        withdrawn: Why it will end without a model call.
    """

    seq: int
    id: str
    by: str
    at: float
    first: bool = False
    steers: int = 0
    on_disconnect: Literal["continue", "cancel"] | None = None
    withdrawn: Reason | None = None

    def joins(self, turn: int) -> bool:
        """Whether it joins `turn` at its next model call."""
        return self.steers == turn and self.withdrawn is None


class ConversationState(Struct, kw_only=True, omit_defaults=True):
    """The snapshot.

    Attributes:
        config: The settings in force.
        queue: Messages in the order in which they get their turns.
        running: The running turn, or 0.
        last_turn: The newest turn, running or not; 0 for none.
        last_ids: The newest sends, oldest first: who sent them, and their ids.
        asked_tokens: Input tokens of the running turn's model calls, estimated.
    """

    config: Config = Config()
    queue: list[Waiting] = []
    running: int = 0
    last_turn: int = 0
    last_ids: list[tuple[str, str]] = []
    asked_tokens: int = 0

    @property
    def live(self) -> bool:
        """Whether a turn runs or a message waits."""
        return bool(self.running or self.queue)

    def sent(self, by: str, id_: str) -> None:
        """Takes note of a principal's send."""
        self.last_ids.append((by, id_))
        del self.last_ids[:-LAST_IDS]

    def enqueue(self, waiting: Waiting) -> None:
        """Puts a message behind those that it does not go before."""
        place = len(self.queue)
        if waiting.first:
            behind = [n for n, other in enumerate(self.queue) if not other.first]
            place = behind[0] if behind else place
        self.queue.insert(place, waiting)

    def next(self) -> Waiting | None:
        """Takes the next message out of the queue."""
        return self.queue.pop(0) if self.queue else None

    def steering(self, turn: int) -> list[int]:
        """Returns the numbers of the messages that want to join `turn`."""
        return [waiting.seq for waiting in self.queue if waiting.joins(turn)]

    def join(self, turn: int, through: int) -> list[Waiting]:
        """Takes those up to number `through` out and returns them."""
        joined = [w for w in self.queue if w.seq <= through and w.joins(turn)]
        self.queue = [w for w in self.queue if w not in joined]
        return joined


_encoder = msgspec.json.Encoder()  # not MessagePack: settings may hold any integer
_decoder = msgspec.json.Decoder(ConversationState)


class _Encoded(Struct, kw_only=True, omit_defaults=True):
    """A state whose settings are encoded already."""

    config: Raw
    queue: list[Waiting] = []
    running: int = 0
    last_turn: int = 0
    last_ids: list[tuple[str, str]] = []
    asked_tokens: int = 0


class Snapshots:
    """Encodes a state for each commit, its settings only when they have changed."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._config: Config | None = None
        self._encoded = Raw()

    def take(self) -> tuple[bytes, bool]:
        """Returns the snapshot, and whether a turn runs or a message waits."""
        state = self._state
        if self._config is not state.config:
            self._config = state.config
            self._encoded = Raw(_encoder.encode(state.config))
        encoded = _Encoded(
            config=self._encoded,
            queue=state.queue,
            running=state.running,
            last_turn=state.last_turn,
            last_ids=state.last_ids,
            asked_tokens=state.asked_tokens,
        )
        return _encoder.encode(encoded), state.live


def load(data: bytes) -> ConversationState:
    """Decodes a snapshot; no bytes are a new conversation."""
    return _decoder.decode(data) if data else ConversationState()


def configured(config: Config, change: Config) -> Config:
    """Applies a change: absent members stay, null takes a member back."""
    members = structs.asdict(config)
    for name, value in structs.asdict(change).items():
        if value is not UNSET:
            members[name] = UNSET if value is None else value
    return Config(**members)


def tools_of(config: Config) -> dict[str, Tool]:
    """Returns the configured tools by name."""
    return {tool.name: tool for tool in (config.tools or ())}
