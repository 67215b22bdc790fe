"""How often is too often: pure counters that take the time as an argument."""

from collections import deque


class TokenBucket:
    """Allows `per_second` on average and `burst` at once.

    Args:
        per_second: Tokens that come back each second.
        burst: Tokens it holds when full, as it is at first.
        now: Seconds on a monotonic clock.
    """

    def __init__(self, *, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float, cost: float = 1.0) -> float:
        """Takes tokens; returns 0, or how many seconds too early it is.

        What came too early costs nothing.
        """
        tokens = self._tokens + (now - self._at) * self._per_second
        self._at = now
        self._tokens = tokens = min(tokens, self._burst)
        if tokens < cost:
            return (cost - tokens) / self._per_second
        self._tokens = tokens - cost
        return 0.0


class Recent:
    """Tells when something happened more than `limit` times within `seconds`."""

    def __init__(self, *, limit: int, seconds: float) -> None:
        self._seconds = seconds
        self._limit = limit
        self._times: deque[float] | None = None  # most need none

    def exceeded(self, now: float) -> bool:
        """Counts one more, and says whether that was too many."""
        times = self._times
        if times is None:
            times = self._times = deque(maxlen=self._limit + 1)
        times.append(now)
        return len(times) == times.maxlen and now - times[0] <= self._seconds
