"""What happened when: a few hundred buckets, however long the run is."""

from collections import Counter

from msgspec import Struct

from client_demo.load.sketch import together

_MOST_BUCKETS = 240


class Bucket(Struct, kw_only=True):
    """What happened in one stretch of time.

    Attributes:
        users: The most that were at it.
        tokens: Pieces of answer that came.
        statuses: Turns that ended, by how.
        errors: How many.
        ttft_ms: Of the answers that began, how many took how long, to 0.5 %.
    """

    users: int = 0
    tokens: int = 0
    statuses: dict[str, int] = {}
    errors: int = 0
    ttft_ms: dict[float, int] = {}


class Series(Struct, kw_only=True):
    """Buckets of one length, from the start of the run on.

    Attributes:
        width_seconds: How long a bucket is; doubles when there are too many.
        buckets: In order, without a gap.
    """

    width_seconds: float = 1.0
    buckets: list[Bucket] = []

    def at(self, time_seconds: float) -> Bucket:
        """Returns the bucket of a time since the start."""
        while time_seconds >= self.width_seconds * _MOST_BUCKETS:
            self._halve()
        place = max(0, int(time_seconds / self.width_seconds))
        while len(self.buckets) <= place:
            self.buckets.append(Bucket(statuses={}, ttft_ms={}))
        return self.buckets[place]

    def add(self, other: "Series") -> None:
        """Adds what another one has counted at the same times."""
        while self.width_seconds < other.width_seconds:
            self._halve()
        together = int(self.width_seconds / other.width_seconds)
        for first in range(0, len(other.buckets), together):
            theirs = other.buckets[first : first + together]
            mine = self.at(first * other.width_seconds)
            mine.users += max(bucket.users for bucket in theirs)
            for bucket in theirs:
                _pour(bucket, mine)

    def _halve(self) -> None:
        """Makes one bucket of two."""
        old, self.buckets = self.buckets, []
        self.width_seconds *= 2
        for place, bucket in enumerate(old):
            if place % 2 == 0:
                self.buckets.append(bucket)
            else:
                users = max(self.buckets[-1].users, bucket.users)
                _pour(bucket, self.buckets[-1])
                self.buckets[-1].users = users


def _pour(source: Bucket, into: Bucket) -> None:
    into.tokens += source.tokens
    into.errors += source.errors
    into.ttft_ms = together(into.ttft_ms, source.ttft_ms)
    into.statuses = dict(Counter(into.statuses) + Counter(source.statuses))
