"""A store that outlives crashes, takes its time, and fails when it is told to."""

import random
from collections import defaultdict
from collections.abc import Sequence

import anyio
import msgspec

from protocol.events import ToolCallEvent
from tests.fakes.faulty import put_text
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, Receipt, StoreError, Write
from wsserver.stores.memory import MemoryStore

_call = msgspec.json.Decoder(ToolCallEvent).decode


class Disk(MemoryStore):
    """Keeps what was committed or put; a crash ends a commit halfway.

    Attributes:
        heads: The last stored number by key.
        receipts_kept: Space, conversation, principal and id of stored receipts.
        calls: Key and id of stored tool calls.
        entries: All that was ever stored, by key, trimmed or not.
        trimmed: Up to which number a log was trimmed, stored or not.
        broken_until: Until when it fails.
    """

    def __init__(self, chance: random.Random, durable: bool) -> None:
        super().__init__()
        self.durable = durable
        self.heads: dict[str, int] = {}
        self.receipts_kept: set[tuple[str, str, str, str]] = set()
        self.calls: set[tuple[str, str]] = set()
        self.entries: defaultdict[str, list[Entry]] = defaultdict(list)
        self.trimmed: defaultdict[str, int] = defaultdict(int)
        self.broken_until = 0.0
        self.crashed = anyio.Event()
        self._under_way: set[str] = set()
        self._chance = chance
        self._pace = chance.choice([0.0, 0.002, 0.02, 0.5])

    def head(self, key: str) -> int:
        """Returns the last number that is stored."""
        kept = self._kept.get(key)
        return kept.meta.head if kept else 0

    def crash(self) -> None:
        """The process dies; what is being written may be down or may not."""
        crashed, self.crashed = self.crashed, anyio.Event()
        crashed.set()

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        if not self.durable:
            await super().commit(writes, now)
            for write in writes:
                self.entries[write.key] += write.entries
            return
        crashed = self.crashed
        self._under_way = {write.key for write in writes}
        try:
            await self._commit(writes, now, crashed)
        finally:
            self._under_way = set()

    async def _commit(
        self, writes: Sequence[Write], now: float, crashed: anyio.Event
    ) -> None:
        with anyio.move_on_after(self._pace * self._chance.expovariate(1.0)):
            await crashed.wait()
        if crashed.is_set() and self._chance.random() < 0.5:
            raise StoreError("the process died before the commit was down")
        if anyio.current_time() < self.broken_until:
            raise StoreError("the disk is full")
        await super().commit(writes, now)
        for write in writes:
            self._note(write)
        if crashed.is_set():
            raise StoreError("the process died and nobody heard of the commit")

    def put_text(self, key: str, entry: Entry) -> bool:
        if anyio.current_time() < self.broken_until or self._chance.random() < 0.3:
            return False
        assert key not in self._under_way, "it would overtake what came before"
        assert self._kept[key].meta.live, "text comes while a turn runs"
        self.heads[key] = entry.seq
        self.entries[key].append(entry)
        return put_text(self._kept, key, entry)

    async def meta(self, key: str) -> Meta | None:
        await self._readable()
        return await super().meta(key)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        await self._readable()
        return await super().read(key, after, max_bytes)

    async def receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        await self._readable()
        return await super().receipts(key, since, limit)

    async def _readable(self) -> None:
        if self.durable and self._pace:
            await anyio.sleep(self._pace * self._chance.random())
        if anyio.current_time() < self.broken_until and self._chance.random() < 0.5:
            raise StoreError("the disk can't be read")

    def _note(self, write: Write) -> None:
        if write.meta is None:
            return
        self.heads[write.key] = write.meta.head
        self.entries[write.key] += write.entries
        space, _, conversation = write.key.rpartition("/")
        for receipt in write.receipts:
            self.receipts_kept.add((space, conversation, receipt.principal, receipt.id))
        for entry in write.entries:
            if entry.kind == "tool_call":
                self.calls.add((write.key, _call(entry.body).call))
