"""How fast a client may send: the rate that the server announced, kept on this side.

Nothing is refused that need not be. Some of what may go at once is left for what
must not wait, such as an interrupt: that goes whether or not there is room.
"""

from protocol.content import Limits

KEPT_BACK = 0.1
"""Share of the burst that is kept for what does not ask for room, and for frames
that a network holds up and then brings together."""

ROUNDING = 1e-4
"""So that there is room at `room_at`, whatever a clock makes of it."""


class Pace:
    """Frames that may go now; times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        """Starts without a limit."""
        self._per_second: float | None = None
        self._burst = self._kept_back = self._frames = self._at = 0.0

    def announced(self, limits: Limits, now: float) -> None:
        """A connection begins; its `hello` is on its way already."""
        self._per_second = limits.frames_per_second or None
        self._burst = float(limits.frames_burst or limits.frames_per_second or 0)
        self._kept_back = self._burst * KEPT_BACK // 1
        self._frames = self._burst - 1
        self._at = now

    def advance(self, now: float) -> None:
        """Time has passed; what is not told comes late, never early."""
        if self._per_second is not None and now > self._at:
            more = (now - self._at) * self._per_second
            self._frames = min(self._burst, self._frames + more)
            self._at = now

    def spend(self, cost: float) -> None:
        """A frame goes out."""
        self._frames -= cost

    def has_room(self) -> bool:
        """Whether a frame that can wait may go, as far as time was told."""
        return self._per_second is None or self._missing() <= ROUNDING

    def room_at(self) -> float:
        """When there is room for one frame; a time that is past where there is."""
        if self._per_second is None:
            return self._at
        return self._at + max(0.0, self._missing()) / self._per_second

    def _missing(self) -> float:
        return self._kept_back + 1 - self._frames
