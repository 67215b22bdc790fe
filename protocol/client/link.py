"""The client's side of one connection after another: phases and deadlines.

It knows when to dial, when to give a connection up and how long to wait after
one was lost. It knows nothing of frames or conversations; `protocol.client.machine`
does.
"""

from typing import Literal

from protocol.backoff import Backoff
from protocol.codes import advice

Phase = Literal["connecting", "greeting", "online", "offline", "stopped"]
Due = Literal["connect", "silent", "no_welcome", "ping"]
_Input = Literal["connected", "welcomed", "lost", "ended", "due"]

_TRANSITIONS: dict[tuple[Phase, _Input], Phase] = {
    ("connecting", "connected"): "greeting",
    ("connecting", "lost"): "offline",
    ("connecting", "ended"): "stopped",
    ("greeting", "welcomed"): "online",
    ("greeting", "lost"): "offline",
    ("greeting", "ended"): "stopped",
    ("online", "lost"): "offline",
    ("online", "ended"): "stopped",
    ("offline", "due"): "connecting",
}

SILENT_HEARTBEATS = 2.5
"""A server may miss one heartbeat on a busy machine, hardly two."""

LATE_SECONDS = 1.0
"""A timer this late says that this process slept, not that the server is silent."""


class ClientStateError(Exception):
    """The input is not possible in the machine's phase; nothing has changed."""


class Link:
    """Phases and deadlines; times are seconds of one monotonic clock."""

    def __init__(self, *, backoff: Backoff, welcome_timeout_seconds: float) -> None:
        self.phase: Phase = "connecting"
        self._backoff = backoff
        self._welcome_timeout_seconds = welcome_timeout_seconds
        self._heartbeat_seconds = 0.0
        self._online_since: float | None = None
        self._floor_seconds = 0.0
        self._retry_at: float | None = None
        self._dead_at: float | None = None
        self._ping_at: float | None = None

    def connected(self, now: float) -> None:
        """The transport is open; a welcome is awaited."""
        self._move("connected")
        self._floor_seconds = 0.0
        self._dead_at = now + self._welcome_timeout_seconds

    def welcomed(self, now: float, heartbeat_seconds: float) -> None:
        """The server said welcome."""
        self._move("welcomed")
        self._online_since = now
        self._heartbeat_seconds = max(heartbeat_seconds, 0.1)
        self._ping_at = now + self._heartbeat_seconds
        self.heard(now)

    def heard(self, now: float) -> None:
        """Something arrived."""
        if self.phase == "online" and self._ping_at is not None:
            self._dead_at = now + SILENT_HEARTBEATS * self._heartbeat_seconds

    def going_away(self, reconnect_after_seconds: float) -> None:
        """The server asks for this wait between the close and the next attempt."""
        self._floor_seconds = reconnect_after_seconds

    def condemn(self) -> None:
        """The driver was told to drop the connection: no deadline runs on."""
        self._dead_at = self._ping_at = None

    def lost(self, code: int | None, now: float) -> float | None:
        """The transport is gone, or could not be opened.

        Args:
            code: The close code; None where no close frame came.
            now: When.

        Returns:
            Seconds until the next attempt, or None where none would help.
        """
        verdict = advice(code) if code is not None else "back_off"
        self._move("ended" if verdict == "stop" else "lost")
        self.condemn()
        if self._online_since is not None:
            self._backoff.held(now - self._online_since)
            self._online_since = None
        if verdict == "stop":
            return None
        floor_seconds, self._floor_seconds = self._floor_seconds, 0.0
        delay_seconds = self._backoff.delay_seconds(floor_seconds)
        if (
            verdict == "reconnect_now"
            and not floor_seconds
            and self._backoff.attempts == 1
        ):
            delay_seconds = 0.0
        self._retry_at = now + delay_seconds
        return delay_seconds

    def next_timer(self) -> float | None:
        """When `due` must be called at the latest; None while nothing runs."""
        times = (self._retry_at, self._dead_at, self._ping_at)
        return min((at for at in times if at is not None), default=None)

    def due(self, now: float) -> list[Due]:
        """Says what the clock has brought, each once."""
        found: list[Due] = []
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            self._move("due")
            found.append("connect")
        if self._dead_at is not None and now >= self._dead_at:
            if self.phase == "online" and now - self._dead_at > LATE_SECONDS:
                self._dead_at = now + self._heartbeat_seconds
            else:
                found.append("silent" if self.phase == "online" else "no_welcome")
                self.condemn()
        if self._ping_at is not None and now >= self._ping_at:
            self._ping_at = now + self._heartbeat_seconds
            found.append("ping")
        return found

    def _move(self, what: _Input) -> None:
        phase = _TRANSITIONS.get((self.phase, what))
        if phase is None:
            raise ClientStateError(f"{what!r} is not possible while {self.phase}.")
        self.phase = phase
