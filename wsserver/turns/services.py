"""What conversations share: models, limits, time, and who counts what."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from anyio.abc import TaskGroup
from msgspec import Struct, field, structs

from protocol.events import DoneEvent, UsageEvent
from wsserver.engine.limits import TurnLimits
from wsserver.engine.param_bounds import UNBOUNDED, ParamBounds
from wsserver.engine.provider import Provider
from wsserver.turns.alarms import Alarms
from wsserver.turns.clock import Clock
from wsserver.turns.server_tools import NoServerTools, ServerTools
from wsserver.turns.turn_counts import TurnCounts


class Target(Struct, frozen=True, kw_only=True):
    """Where a model name leads.

    Attributes:
        model: The name the upstream knows.
        context_tokens: How long a prompt may be; None for no limit of ours.
        params: Request members that each request has.
        bounds: What conversations may add or override; None for what the settings say
            for all models.
        passes_params: Whether the provider is given what the conversation says as it
            is: it asks several models, each with `params` and bounds of its own.
        first_token_seconds: How long a first token is waited for; None for the
            limit of all turns.
        provider_name: What metrics call its provider.
        address: Where its upstream is, for the log; None for nowhere in particular.
    """

    provider: Provider
    model: str
    context_tokens: int | None = None
    params: dict[str, Any] = {}
    bounds: ParamBounds | None = None
    passes_params: bool = False
    first_token_seconds: float | None = None
    provider_name: str = "custom"
    address: str | None = None

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuses what a conversation may not add or override.

        Raises:
            BeyondBoundsError: Which member that is, why, and what to do.
        """
        (self.bounds or UNBOUNDED).check(params)

    def members(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a request has of its own `params` and a conversation's."""
        if self.passes_params:
            return dict(params)
        return (self.bounds or UNBOUNDED).members(self.params, params)

    def limits(self, limits: TurnLimits) -> TurnLimits:
        """Returns a turn's limits with those of this target."""
        if self.first_token_seconds is None:
            return limits
        patience = structs.replace(
            limits.patience, first_token_seconds=self.first_token_seconds
        )
        return structs.replace(limits, patience=patience)


class Models(Protocol):
    """Which models there are."""

    default: str

    def names(self) -> Sequence[str]:
        """Returns the names to show to clients."""
        ...

    def resolve(self, name: str) -> Target | None:
        """Returns where the name leads, None if nowhere."""
        ...


class TurnMetrics(Protocol):
    """What is counted of turns."""

    def turn_started(self, model: str) -> None:
        """Counts a turn that begins; `model` is what the conversation asked for."""
        ...

    def turn_ended(self, model: str, done: DoneEvent, code: str | None) -> None:
        """Counts how a turn ended, and the code of its error if it failed."""
        ...

    def turn_took(
        self,
        model: str,
        answering: str,
        done: DoneEvent,
        usage: UsageEvent,
        code: str | None,
    ) -> None:
        """Counts what a turn took, and which model answered last."""
        ...

    def first_token(self, model: str, seconds: float) -> None:
        """Counts the seconds from a message in the log to its first token."""
        ...

    def interrupted(self, phase: str, stop_seconds: float) -> None:
        """Counts an interrupt and the time until the upstream was closed."""
        ...

    def tool_done(self, status: str, seconds: float) -> None:
        """Counts a settled tool call, and the seconds since the model made it."""
        ...

    def upstream_retry(self, model: str, code: str) -> None:
        """Counts another attempt; `code` is why the one before failed."""
        ...

    def conversations(self, loaded: int, running: int) -> None:
        """Sets how many conversations are in memory and how many turns run."""
        ...


class ConversationLimits(Struct, frozen=True, kw_only=True):
    """What one conversation and one principal may have.

    Attributes:
        active_turns: Running turns of one space.
        stored: Conversations of one space that are kept; None for no limit.
        queued: Waiting messages of one conversation.
        content_bytes: The encoded content and metadata of a message.
        tool_output_bytes: The encoded output of a tool.
        detach_grace_seconds: How long a turn goes on with nobody connected.
        turn: What one turn may take.
    """

    active_turns: int = 16
    stored: int | None = None
    queued: int = 8
    content_bytes: int = 262_144 - 2048
    tool_output_bytes: int = 131_072
    detach_grace_seconds: float = 60.0
    turn: TurnLimits = TurnLimits()


class Services(Struct, kw_only=True):
    """What every conversation is given.

    Attributes:
        tasks: Owns the turns' tasks.
        alarms: Tells when something is due.
        draining: Whether new turns are refused because the server stops.
        failing: Returns whether the store can't be written at the moment.
        server_tools: What the server runs itself.
        running: Counts the turns that run.
    """

    models: Models
    limits: ConversationLimits
    metrics: TurnMetrics
    clock: Clock
    tasks: TaskGroup
    alarms: Alarms
    failing: Callable[[], bool]
    server_tools: ServerTools = NoServerTools()
    draining: bool = False
    running: TurnCounts = field(default_factory=TurnCounts)
