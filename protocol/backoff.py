"""Full-jitter exponential back-off: how long to wait before the next attempt.

Not a timer and not a retry loop: it holds one number. The caller tells it how
attempts went and does the waiting.
"""

from collections.abc import Callable

BASE_SECONDS = 2.0
"""Keeps 500 clients that lose one server together below 10 % in any 100 ms."""

CAP_SECONDS = 30.0
STABLE_SECONDS = 30.0


class Backoff:
    """Spreads attempts evenly over a window that doubles until it is capped.

    The window is forgotten only after a stable period, so a server that
    accepts connections and drops them at once is not stormed.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float],
        base_seconds: float = BASE_SECONDS,
        cap_seconds: float = CAP_SECONDS,
        stable_seconds: float = STABLE_SECONDS,
    ) -> None:
        """Starts with no attempt made.

        Args:
            random: Gives numbers evenly spread over `[0, 1)`.
            base_seconds: The first window.
            cap_seconds: The largest window.
            stable_seconds: How long an attempt must have held to start over.
        """
        self._random = random
        self._base_seconds = base_seconds
        self._cap_seconds = cap_seconds
        self._stable_seconds = stable_seconds
        self._window_seconds = base_seconds
        self._attempts = 0

    @property
    def attempts(self) -> int:
        """Delays handed out since the last stable period."""
        return self._attempts

    def held(self, up_seconds: float) -> None:
        """Says how long the last attempt held; long enough starts over."""
        if up_seconds >= self._stable_seconds:
            self.reset()

    def reset(self) -> None:
        """Starts over."""
        self._window_seconds = self._base_seconds
        self._attempts = 0

    def delay_seconds(self, at_least_seconds: float = 0.0) -> float:
        """Draws the next wait and widens the window.

        Args:
            at_least_seconds: A floor that the other side asked for; the jitter comes
                on top, as all clients were told the same floor.
        """
        window_seconds = self._window_seconds
        self._window_seconds = min(self._cap_seconds, window_seconds * 2)
        self._attempts += 1
        return at_least_seconds + self._random() * window_seconds
