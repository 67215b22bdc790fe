"""A store in memory that can be slow, refuse, and outlive its process."""

from collections.abc import Callable, Sequence

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from wsserver.log.entry import Entry
from wsserver.log.store import Meta, StoreError, Write
from wsserver.stores.memory import Kept, MemoryStore
from wsserver.stores.rows import plan


class FaultyStore(MemoryStore):
    """Keeps logs, when it is not told to fail.

    Attributes:
        durable: As a log understands it: the test decides what a restart is.
        commits: What was committed.
        failing: Whether commits fail.
        failing_reads: How many of the next reads fail.
        spoil: What becomes of entries that are read.
        gate: Commits wait until it is set.
        at_once: Whether text of a running turn is stored at once.
    """

    def __init__(self, *, durable: bool = True, at_once: bool = False) -> None:
        super().__init__()
        self.durable = durable
        self.at_once = at_once
        self.commits: list[Sequence[Write]] = []
        self.failing = False
        self.failing_reads = 0
        self.spoil: Callable[[list[Entry]], list[Entry]] = list
        self.gate = anyio.Event()
        self.gate.set()

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        await self.gate.wait()
        if self.failing:
            await checkpoint()
            raise StoreError("the disk is full")
        await super().commit(writes, now)
        self.commits.append(writes)

    def put_text(self, key: str, entry: Entry) -> bool:
        return self.at_once and not self.failing and put_text(self._kept, key, entry)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self._maybe_fail()
        return self.spoil(await super().read(key, after, max_bytes))

    async def meta(self, key: str) -> Meta | None:
        self._maybe_fail()
        return await super().meta(key)

    def _maybe_fail(self) -> None:
        if self.failing_reads:
            self.failing_reads -= 1
            raise StoreError("the disk can't be read")


def put_text(kept: dict[str, Kept], key: str, entry: Entry) -> bool:
    """Does what a store does that keeps what it has in memory."""
    if key not in kept or not kept[key].meta.live:
        return False
    meta = msgspec.structs.replace(kept[key].meta, head=entry.seq)
    write = Write(key=key, meta=meta, entries=[entry])
    change = plan(write, kept[key].written)
    kept[key].check(key, change)
    kept[key].apply(write, change, kept[key].written)
    return True
