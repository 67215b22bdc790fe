"""One conversation's log in memory: its newest entries, and who follows them.

The log numbers what is appended and keeps a *tail* of entries; older ones are in
the store. It decides what the next commit writes (`take_write`) and what becomes
visible after it (`committed`); `wsserver.log.committer` does the writing.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import anyio
import msgspec

from protocol.events import Event
from wsserver.log.entry import MAX_MERGED_BYTES, Entry, compact, text_entry
from wsserver.log.store import Meta, Receipt, Store, Write

E = TypeVar("E", bound=Event)

SEAL_AFTER = 256
"""How many single entries the tail holds before the older ones are joined: an
entry costs about 150 bytes, a number in a joined one 4 bytes and its text."""

_seq = attrgetter("seq")
_encode = msgspec.json.Encoder().encode


class ConversationLog:
    """An append-only log of numbered entries.

    Attributes:
        key: What stores know it by (`SPACE/CONVERSATION`).
        conversation: What clients know it by.
        epoch: Changes only if the log may have lost continuity.
        head: The last number.
        oldest: The first number that is kept; `head + 1` when none is.
        state: The engine's snapshot that goes down with the next commit.
        live: Whether a turn runs or a message waits, as of `state`.
        deleted: Whether it is gone.
    """

    def __init__(
        self,
        key: str,
        meta: Meta,
        store: Store,
        dirty: Callable[["ConversationLog"], None],
        snapshot: Callable[[], tuple[bytes, bool]],
    ) -> None:
        self.key = key
        self.conversation = key.rpartition("/")[2]
        self.epoch = meta.epoch
        self.head = meta.head
        self.oldest = meta.oldest
        self.deleted = False
        self._store = store
        self._visible_at_once = not store.durable
        self._committed = meta.head  # the last number in the store
        self._floor = meta.head  # the tail holds floor + 1 ... head
        self._tail: list[Entry] = []
        self._loose = 0  # entries appended since the tail was last joined
        self._receipts: list[Receipt] = []
        self._compact_from = meta.head + 1  # first number of rows not yet compacted
        self._compact_due = False
        self._keep_from = meta.head + 1  # the tail is not dropped from here on
        self._trim_through = 0
        self._dirty = dirty
        self._is_dirty = False
        self._snapshot = snapshot
        self._wakes: set[Callable[[], None]] = set()

    # Appending

    def append(self, event: type[E], **members: Any) -> E:
        """Appends an event under the next number and returns it."""
        made = event(conversation=self.conversation, seq=self.head + 1, **members)
        kind = str(event.__struct_config__.tag)
        seq = made.seq
        self._add(Entry(kind, seq, seq, members.get("turn", 0), _encode(made)))
        return made

    def append_text(self, kind: str, turn: int, text: str, attrs: bytes = b"") -> None:
        """Appends text under as few numbers as frames of bounded size allow."""
        entry = text_entry(kind, self.head + 1, turn, text, attrs)
        if len(entry.body) > MAX_MERGED_BYTES and len(text) > 1:
            half = len(text) // 2
            self.append_text(kind, turn, text[:half], attrs)
            self.append_text(kind, turn, text[half:], attrs)
            return
        self._add(entry)

    def adopt(self, entries: Sequence[Entry]) -> None:
        """Appends entries that were numbered elsewhere; only to an empty log."""
        assert self.head == 0, "only an empty log adopts entries"
        for entry in entries:
            if self.head == 0:
                self.oldest = entry.first
                self._floor = self._committed = entry.first - 1
                self._compact_from = self._keep_from = entry.first
            self._add(entry)

    def remember(self, receipt: Receipt) -> None:
        """Keeps a command's receipt with the next commit."""
        self._receipts.append(receipt)
        self.touch()

    def touch(self) -> None:
        """Asks for a commit: the state, the receipts or the entries changed."""
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty(self)

    def turn_began(self, first: int) -> None:
        """Keeps the tail from the turn's first number on, until the next turn."""
        self._keep_from = first

    def compact_soon(self) -> None:
        """Joins, with the next commit, all rows since the last compaction."""
        self._compact_due = True
        self.touch()

    def trim(self, through: int) -> None:
        """Drops all up to `through` with the next commit."""
        self._trim_through = max(self._trim_through, through)
        self.oldest = max(self.oldest, through + 1)
        self.touch()

    def _add(self, entry: Entry) -> None:
        self._tail.append(entry)
        self._loose += 1
        self.head = entry.seq
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty(self)
        if self._visible_at_once:
            for wake in self._wakes:
                wake()

    # Reading

    @property
    def stored(self) -> int:
        """The last number that may leave the process."""
        return self.head if self._visible_at_once else self._committed

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` when `stored` moved or the log was deleted.

        A wake-up carries nothing; it may come without cause.
        """
        self._wakes.add(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Undoes `subscribe`; harmless when it was not there."""
        self._wakes.discard(wake)

    def read(self, after: int, max_bytes: int) -> list[Entry] | None:
        """Returns visible entries from `after + 1` on, None if not in memory.

        Stops once the bodies exceed `max_bytes`.
        """
        stored = self.stored
        if after >= stored:
            return []
        if after < self._floor:
            return None
        tail = self._tail
        last = tail[-1]
        if last.first == after + 1 and last.seq <= stored:
            return [last]
        return _take(tail, after, stored, max_bytes)

    async def fetch(self, after: int, max_bytes: int) -> list[Entry]:
        """Returns the same from the store.

        Raises:
            StoreError: The store can't be read.
        """
        after = max(after, self.oldest - 1)
        through = self._committed
        rows = await self._store.read(self.key, after, max_bytes)
        return _take(rows, after, through, max_bytes)

    async def until_stored(self, seq: int) -> None:
        """Waits until the store has everything up to `seq`, or the log is gone."""
        while self.stored < seq and not self.deleted:
            moved = anyio.Event()
            self.subscribe(moved.set)
            try:
                await moved.wait()
            finally:
                self.unsubscribe(moved.set)

    def tail(self, first: int) -> list[Entry]:
        """Returns what memory holds from `first` on, stored or not."""
        return _take(self._tail, max(first - 1, self._floor), self.head, 2**62)

    async def whole(self, max_bytes: int) -> "list[Entry]":
        """Returns all kept entries, stored or not, in order.

        Raises:
            StoreError: The store can't be read.
        """
        entries: list[Entry] = []
        position = self.oldest - 1
        while position < self._floor:
            batch = await self.fetch(position, max_bytes)
            if not batch:
                break
            entries += batch
            position = batch[-1].seq
        return entries + _take(self._tail, max(position, self._floor), self.head, 2**62)

    async def load_tail(self, first: int) -> None:
        """Takes the entries from `first` on into memory; only after loading.

        Raises:
            StoreError: The store can't be read.
        """
        assert not self._tail, "the tail is loaded before anything is appended"
        position = max(first, self.oldest) - 1
        entries: list[Entry] = []
        floor = position
        while position < self.head:
            batch = await self.fetch(position, MAX_MERGED_BYTES)
            if not batch:
                break
            entries += batch
            position = batch[-1].seq
        self._tail, self._floor, self._keep_from = entries, floor, floor + 1

    # Committing

    @property
    def clean(self) -> bool:
        """Whether the store has everything."""
        return not self._is_dirty and self._committed == self.head

    def take_write(self) -> Write:
        """Returns what the store lacks; changes nothing it could lose."""
        self._is_dirty = False
        state, live = self._snapshot()
        compacted: Sequence[Entry] = ()
        if self._compact_due:
            compacted = compact(self.tail(self._compact_from))
        return Write(
            key=self.key,
            meta=Meta(
                epoch=self.epoch,
                head=self.head,
                oldest=self.oldest,
                live=live,
                state=state,
            ),
            entries=_take(self._tail, self._committed, self.head, 2**62),
            compacted=compacted,
            receipts=tuple(self._receipts),
            trim_through=self._trim_through,
        )

    def committed(self, write: Write) -> None:
        """Takes note that the store holds `write`, and wakes who follows."""
        assert write.meta is not None
        moved = write.meta.head > self._committed
        self._committed = write.meta.head
        del self._receipts[: len(write.receipts)]
        if write.trim_through == self._trim_through:
            self._trim_through = 0
        if write.compacted:
            self._compact_due = False
            self._compact_from = write.meta.head + 1
            self._join(write.compacted)
        elif self._loose > SEAL_AFTER:
            self._join(compact(self._through(self._committed)))
        self._drop()
        if moved and not self._visible_at_once:
            for wake in self._wakes:
                wake()

    def not_committed(self) -> None:
        """Takes note that `take_write`'s write failed; it stays due."""
        self._is_dirty = True

    def delete(self) -> None:
        """Marks the log as gone and tells who follows it."""
        self.deleted = True
        for wake in self._wakes:
            wake()

    def _through(self, seq: int) -> list[Entry]:
        return self._tail[: bisect_right(self._tail, seq, key=_seq)]

    def _join(self, joined: Sequence[Entry]) -> None:
        """Puts joined entries in the place of the single ones they stand for."""
        begin = bisect_right(self._tail, joined[0].first - 1, key=_seq)
        end = bisect_right(self._tail, joined[-1].seq, key=_seq)
        self._tail[begin:end] = joined
        self._loose = len(self._tail) - begin - len(joined)

    def _drop(self) -> None:
        """Lets go of entries that the store has and nobody in here needs."""
        keep = min(self._keep_from, self._compact_from, self._committed + 1)
        if self._floor + 1 >= keep:
            return
        count = bisect_right(self._tail, keep - 1, key=_seq)
        if count:
            self._floor = self._tail[count - 1].seq
            del self._tail[:count]


def _take(
    entries: Sequence[Entry], after: int, through: int, max_bytes: int
) -> list[Entry]:
    """Cuts `after + 1 ... through` out of contiguous entries, up to `max_bytes`."""
    out: list[Entry] = []
    size = 0
    for index in range(bisect_right(entries, after, key=_seq), len(entries)):
        entry = entries[index]
        if entry.first > through or size > max_bytes:
            break
        out.append(entry.part(after, through))
        size += len(entry.body)
    return out
