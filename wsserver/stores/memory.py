"""The store that forgets: everything in this process, for tests and trials.

Runs under asyncio and trio alike.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter

from anyio.lowlevel import checkpoint

from wsserver.log.entry import Entry
from wsserver.log.store import (
    RECEIPTS_KEPT,
    RECEIPTS_KEPT_SECONDS,
    Meta,
    Receipt,
    Write,
    space_of,
)
from wsserver.stores.rows import (
    Change,
    Row,
    does_not_follow,
    misaligned,
    plan,
    take,
    trim_point,
)

_last = attrgetter("last")
_at = attrgetter("at")


class MemoryStore:
    """Keeps logs until the process ends.

    Attributes:
        durable: False: nothing outlives the process.
    """

    def __init__(self) -> None:
        self.durable = False
        self._kept: dict[str, Kept] = {}
        self._counts = Counter[str]()  # by space

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        """Writes all or nothing; as `Store.commit`."""
        await checkpoint()
        kept, gone = self._kept, {write.key for write in writes if write.delete}
        changes: list[tuple[Write, Change]] = []
        for write in writes:
            if not write.delete:
                changes.append((write, plan(write, now)))
                if write.key in kept and write.key not in gone:
                    kept[write.key].check(write.key, changes[-1][1])
        for key in gone:
            if kept.pop(key, None) is not None:
                self._add(key, -1)
        for write, change in changes:
            if write.key not in kept:
                kept[write.key] = Kept()
                self._add(write.key, 1)
            kept[write.key].apply(write, change, now)

    def put_text(self, key: str, entry: Entry) -> bool:
        """Stores nothing: text of a store that is not durable waits for no commit."""
        return False

    async def meta(self, key: str) -> Meta | None:
        """Returns the conversation's meta; as `Store.meta`."""
        await checkpoint()
        return self._kept[key].meta if key in self._kept else None

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        """Returns entries from `after + 1` on; as `Store.read`."""
        await checkpoint()
        rows = self._kept[key].rows if key in self._kept else []
        start = bisect_right(rows, after, key=_last)
        return take(_entries(rows, start), after, max_bytes)

    async def receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        """Returns the newest receipts, oldest first; as `Store.receipts`."""
        await checkpoint()
        out: list[Receipt] = []
        if key in self._kept:
            for given in self._kept[key].receipts.values():
                ordered = sorted(given.values(), key=_at)
                begin = bisect_left(ordered, since, key=_at)
                out += ordered[max(0, min(begin, len(ordered) - limit)) :]
        return sorted(out, key=_at)

    async def live(self) -> list[str]:
        """Returns the keys whose meta says `live`; as `Store.live`."""
        await checkpoint()
        return [key for key, kept in self._kept.items() if kept.meta.live]

    async def trim_point(self, key: str, before: float, keep_bytes: int) -> int:
        """Returns the highest number that may go; as `Store.trim_point`."""
        await checkpoint()
        if key not in self._kept:
            return 0
        return trim_point(self._kept[key].rows, before, keep_bytes)

    async def idle(self, before: float, limit: int) -> list[str]:
        """Returns keys not written since `before`; as `Store.idle`."""
        await checkpoint()
        idle = [
            (kept.written, key)
            for key, kept in self._kept.items()
            if kept.written < before and not kept.meta.live
        ]
        return [key for _, key in sorted(idle)[:limit]]

    async def count(self, space: str) -> int:
        """Returns how many conversations a space has; as `Store.count`."""
        await checkpoint()
        return self._counts[space]

    async def close(self) -> None:
        """Lets go of everything."""
        await checkpoint()
        self._kept = {}
        self._counts.clear()

    def _add(self, key: str, more: int) -> None:
        space = space_of(key)
        self._counts[space] += more
        if not self._counts[space]:
            del self._counts[space]


class Kept:
    """What is kept of one conversation."""

    meta: Meta
    written: float

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.receipts: defaultdict[str, dict[str, Receipt]] = defaultdict(dict)

    def check(self, key: str, change: Change) -> None:
        """Raises StoreError if the change does not fit what is kept."""
        if change.appended != self.meta.head + 1:
            raise does_not_follow(key)
        if change.dropped and not all(
            self._is_edge(seq) for seq in (change.dropped[0] - 1, change.dropped[1])
        ):
            raise misaligned(key)

    def _is_edge(self, seq: int) -> bool:
        index = bisect_right(self.rows, seq, key=_last)
        return index == len(self.rows) or self.rows[index].first > seq

    def apply(self, write: Write, change: Change, now: float) -> None:
        """Applies a write that `check` has let pass; `now` is seconds since the epoch."""
        rows = self.rows
        if change.dropped:
            begin = bisect_left(rows, change.dropped[0], key=_last)
            end = bisect_right(rows, change.dropped[1], key=_last)
            rows[begin:end] = change.rows
        else:
            rows += change.rows
        del rows[: bisect_right(rows, write.trim_through, key=_last)]
        for receipt in write.receipts:
            given = self.receipts[receipt.principal]
            given.pop(receipt.id, None)
            given[receipt.id] = receipt
            while len(given) > RECEIPTS_KEPT:
                oldest = next(iter(given.values()))
                if oldest.at >= now - RECEIPTS_KEPT_SECONDS:
                    break
                del given[oldest.id]
        assert write.meta is not None, "only a write that deletes has no meta"
        self.meta, self.written = write.meta, now


def _entries(rows: Sequence[Row], start: int) -> Iterator[Entry]:
    return chain.from_iterable(rows[index].entries for index in range(start, len(rows)))
