"""A store in memory that can be slow, refuse, and outlive its process."""

from collections.abc import Sequence

import anyio
from anyio.lowlevel import checkpoint

from wsserver.log.entry import Entry
from wsserver.log.store import Meta, StoreError, Write
from wsserver.stores.memory import MemoryStore


class FaultyStore(MemoryStore):
    """Keeps logs, when it is not told to fail.

    Attributes:
        durable: As a log understands it: the test decides what a restart is.
        commits: What was committed.
        failing: Whether commits fail.
        failing_reads: How many of the next reads fail.
        gate: Commits wait until it is set.
    """

    def __init__(self, *, durable: bool = True) -> None:
        super().__init__()
        self.durable = durable
        self.commits: list[Sequence[Write]] = []
        self.failing = False
        self.failing_reads = 0
        self.gate = anyio.Event()
        self.gate.set()

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        await self.gate.wait()
        if self.failing:
            await checkpoint()
            raise StoreError("the disk is full")
        await super().commit(writes, now)
        self.commits.append(writes)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self._maybe_fail()
        return await super().read(key, after, max_bytes)

    async def meta(self, key: str) -> Meta | None:
        self._maybe_fail()
        return await super().meta(key)

    def _maybe_fail(self) -> None:
        if self.failing_reads:
            self.failing_reads -= 1
            raise StoreError("the disk can't be read")
