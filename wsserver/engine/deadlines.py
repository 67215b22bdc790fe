"""What is due when in a turn; times are seconds on one monotonic clock."""

from typing import Literal

from msgspec import Struct

WAITING_EVERY_SECONDS = 10.0
CLOSE_SECONDS = 5.0
"""What a model call may take to close. A provider that takes longer is not waited
for: the conversation is free, and the call ends when it ends."""

NEVER = float("inf")

Phase = Literal[
    "connecting", "waiting_first_token", "streaming", "retry_wait", "waiting_tools",
    "stopping", "ended",
]  # fmt: skip
"""Where a turn is."""

Due = Literal[
    "abandoned", "turn_timeout", "upstream_stalled", "silent", "retry", "tools",
    "waiting", "not_closed",
]  # fmt: skip


class Patience(Struct, frozen=True, kw_only=True):
    """How long a turn waits.

    Attributes:
        turn_seconds: From its start to its end, but for the time that it waits for tools:
            calls have deadlines of their own, up to a day for a person's approval.
        first_token_seconds: From a request to its first token.
        idle_seconds: Silence of a stream that has begun.
    """

    turn_seconds: float = 600.0
    first_token_seconds: float = 60.0
    idle_seconds: float = 30.0


class Deadlines:
    """The times of one turn.

    Attributes:
        called_at: When the running request went out, or was about to.
        active_at: When the upstream last gave a sign of life.
        retry_at: When to call again, in a retry wait.
        abandon_at: When nobody has watched for too long.
        close_by: When a call that is being closed is not waited for any more.
    """

    __slots__ = ("_ends_at", "_patience", "_tools_since", "_waiting_at", "abandon_at", "active_at", "called_at", "close_by", "retry_at")  # fmt: skip

    def __init__(self, patience: Patience, now: float) -> None:
        self.called_at = self.active_at = self.retry_at = now
        self.abandon_at = self.close_by = NEVER
        self._patience = patience
        self._ends_at = now + patience.turn_seconds
        self._tools_since = now
        self._waiting_at = now + WAITING_EVERY_SECONDS

    def called(self, now: float) -> None:
        """A request goes out."""
        self.called_at = self.active_at = now

    def tools_began(self, now: float) -> None:
        """The turn waits for tools from now on."""
        self._tools_since = now

    def tools_ended(self, now: float) -> None:
        """The model is called again."""
        self._ends_at += now - self._tools_since
        self._waiting_at = now + WAITING_EVERY_SECONDS
        self.called(now)

    def shown_waiting(self, now: float) -> None:
        """The viewers were told that there is no token yet."""
        self._waiting_at = now + WAITING_EVERY_SECONDS

    def next(self, phase: str, tools_at: float) -> float:
        """Returns when something is due, at the latest.

        Args:
            phase: Of the turn machine.
            tools_at: The earliest deadline of an open tool call.
        """
        return min([at for _, at in self._list(phase, tools_at)], default=NEVER)

    def due(self, phase: str, tools_at: float, now: float) -> Due | None:
        """Returns the most important thing that is due now."""
        for what, at in self._list(phase, tools_at):
            if at <= now:
                return what
        return None

    def _list(self, phase: str, tools_at: float) -> list[tuple[Due, float]]:
        """Lists what can become due in a phase, the most important first."""
        abandoned: tuple[Due, float] = ("abandoned", self.abandon_at)
        timeout: tuple[Due, float] = ("turn_timeout", self._ends_at)
        waiting: tuple[Due, float] = ("waiting", self._waiting_at)
        match phase:
            case "connecting" | "waiting_first_token":
                return [abandoned, timeout, ("silent", self._silent_at()), waiting]
            case "streaming":
                idle_at = self.active_at + self._patience.idle_seconds
                return [abandoned, timeout, ("upstream_stalled", idle_at)]
            case "retry_wait":
                return [abandoned, timeout, ("retry", self.retry_at), waiting]
            case "waiting_tools":
                return [abandoned, ("tools", tools_at)]
            case "stopping":
                return [("not_closed", self.close_by)]
            case _:
                return []

    def _silent_at(self) -> float:
        """When a first token is overdue; comments of the upstream put it off."""
        at = self.called_at + self._patience.first_token_seconds
        if self.active_at > self.called_at:
            at = max(at, self.active_at + self._patience.idle_seconds)
        return at
