"""What the connections of one space share: how many they are, and what they take.

Pure: time is an argument. A space is remembered while it is connected, and after that
for as long as its bucket takes to fill up again, so that leaving and coming back
earns nothing and memory is bounded.
"""

from collections import OrderedDict

from wsserver.connections.rate import TokenBucket
from wsserver.connections.settings import ConnectionSettings
from wsserver.turns.errors import refusal

RETRY_AFTER_MS = 5_000
"""For one connection too many; others have to end first."""


class Share:
    """One space's part, for all of its connections.

    Attributes:
        connections: How many there are.
        conversations: How many they have open, each counted once per connection.
    """

    def __init__(
        self, frames: TokenBucket | None, max_conversations: int | None
    ) -> None:
        """Begins with no connection; None stands for no limit."""
        self.connections = 0
        self.conversations = 0
        self._frames = frames
        self._max_conversations = max_conversations

    def take(self, now: float, cost: float) -> float:
        """Takes what a frame costs; returns 0, or how many seconds too early it is."""
        return 0.0 if self._frames is None else self._frames.take(now, cost)

    def check_room(self) -> None:
        """Refuses one open conversation too many.

        Raises:
            CommandError: `too_many_conversations`.
        """
        limit = self._max_conversations
        if limit is not None and self.conversations >= limit:
            raise refusal(
                "too_many_conversations",
                f"{self.conversations} conversations are open for these credentials,"
                " on all connections together, which is the limit; close one first.",
            )


class Quotas:
    """All shares of a server, by space. Times are seconds on a monotonic clock."""

    def __init__(self, settings: ConnectionSettings) -> None:
        """Knows nobody yet; what `settings.limits` announces is what is kept."""
        limits = settings.limits
        self._max_connections = limits.principal_connections
        self._max_conversations = limits.principal_conversations
        self._per_second = limits.principal_frames_per_second
        self._burst = settings.principal_frames_burst
        self._shares: dict[str, Share] = {}
        self._left: OrderedDict[str, float] = OrderedDict()

    def join(self, space: str, now: float) -> Share:
        """Counts a connection in; `leave` has to follow.

        Raises:
            CommandError: `rate_limited`: the space has its limit of connections.
        """
        self._forget(now)
        share = self._shares.get(space)
        if share is None:
            share = Share(self._bucket(now), self._max_conversations)
            self._shares[space] = share
        limit = self._max_connections
        if limit is not None and share.connections >= limit:
            raise refusal(
                "rate_limited",
                f"{share.connections} connections are open for these credentials,"
                " which is the limit; close one, or come again later.",
                retry_after_ms=RETRY_AFTER_MS,
            )
        share.connections += 1
        self._left.pop(space, None)
        return share

    def leave(self, space: str, now: float) -> None:
        """Counts a connection out."""
        share = self._shares[space]
        share.connections -= 1
        if not share.connections:
            self._left[space] = now
        self._forget(now)

    def _bucket(self, now: float) -> TokenBucket | None:
        if self._per_second is None:
            return None
        return TokenBucket(per_second=self._per_second, burst=self._burst, now=now)

    def _forget(self, now: float) -> None:
        """Forgets spaces whose buckets are full again: they are in order of time."""
        fills_seconds = self._burst / self._per_second if self._per_second else 0.0
        while self._left:
            space, left_at = next(iter(self._left.items()))
            if left_at + fills_seconds > now:
                return
            del self._left[space]
            del self._shares[space]
