"""One conversation's log in memory: it numbers what is appended, and who follows it.

The log keeps a *tail* of entries; older ones are in the store. It decides what the
next commit writes (`take_write`) and what becomes visible after it (`committed`);
`wsserver.log.committer` does the writing, `wsserver.log.waiting` waits for it,
`wsserver.log.reading` reads all of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from protocol.events import Event
from protocol.merge import MAX_MERGED_BYTES
from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.listeners import tell_all
from wsserver.log.store import LossError, Meta, Receipt, Store, Write
from wsserver.log.tail import Tail, cut, missing, out_of_order

E = TypeVar("E", bound=Event)

SEAL_AFTER = 256
"""How many single entries the tail holds before they are joined: an entry costs
about 150 bytes, a number in a joined one 4 bytes and its text."""

IDLE_TAIL_BYTES = 2**23
"""How much of a tail stays in memory while no turn runs: about two whole turns."""

_encode = msgspec.json.Encoder().encode


class ConversationLog:
    """An append-only log of numbered entries.

    Attributes:
        key: What stores know it by (`SPACE/CONVERSATION`).
        conversation: What clients know it by.
        epoch: Changes only if the log may have lost continuity.
        head: The last number.
        stored: The last number that may leave the process.
        oldest: The first number that is kept; `head + 1` when none is.
        deleted: Whether nothing is done with it any more.
        gone: Whether those who follow it may be told so: the store has let it go.
        dirty: Whether the next commit has something of it to write.
        kept: Whether the store knows of it, so that a crash can't take it back.
        changes: How often it was changed: an entry, a receipt, the engine's state.
        stalled: Whether the store does not take what was changed: it fails, or has
            not answered for a while.
    """

    __slots__ = (
        "_committed", "_compact_from", "_compact_through", "_counted", "_durable",
        "_hurry", "_keep_from", "_on_dirty", "_only_text", "_receipts", "_settled",
        "_settling", "_snapshot", "_store", "_tail", "_taken", "_trim_through", "_wakes",
        "changes", "conversation", "deleted", "dirty", "epoch", "gone", "head", "kept", "key",
        "oldest", "stalled", "stored",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        meta: Meta,
        store: Store,
        dirty: Callable[["ConversationLog"], None],
        snapshot: Callable[[], tuple[bytes, bool]],
        *,
        hurry: Callable[[], None] = lambda: None,
        kept: bool = True,
    ) -> None:
        """Makes a log with nothing of it in memory yet.

        Args:
            key: See the attributes.
            meta: What the store knows of it.
            store: Where older entries are read.
            dirty: Told when there is something to commit.
            snapshot: Returns the engine's state, encoded, and whether a turn runs
                or a message waits; both are written with each commit.
            hurry: Told when somebody waits for the next commit.
            kept: Whether `meta` came from the store.
        """
        self.key = key
        self.conversation = key.rpartition("/")[2]
        self.epoch = meta.epoch
        self.head = self.stored = meta.head
        self.oldest = meta.oldest
        self.deleted = self.gone = False
        self.dirty = False
        self.kept = kept or not store.durable
        self.changes = 0
        self.stalled = False
        self._store = store
        self._durable = store.durable
        self._settled = 0  # changes that are in the store
        self._settling = 0  # with the commit under way
        self._committed = meta.head  # the last number in the store
        self._counted = meta.head  # the last one that `committed` told of
        self._tail = Tail(meta.head)
        self._receipts: list[Receipt] = []
        self._compact_from = meta.head + 1  # first number of rows not yet compacted
        self._compact_through = 0  # rows up to this number are to be compacted
        self._keep_from = meta.head + 1  # the tail is not dropped from here on
        self._trim_through = 0
        self._on_dirty = dirty
        self._hurry = hurry
        self._snapshot = snapshot
        self._taken = (b"", False)  # the newest snapshot
        self._only_text = False  # nothing but text came since
        self._wakes: dict[Callable[[], None], None] = {}  # a set that keeps its order

    # Appending

    def append(self, event: type[E], **members: Any) -> E:
        """Appends an event under the next number and returns it."""
        made = event(conversation=self.conversation, seq=self.head + 1, **members)
        kind, seq = str(event.__struct_config__.tag), made.seq
        self._only_text = False
        self._add(Entry(kind, seq, seq, members.get("turn", 0), _encode(made)))
        self._mark()
        return made

    def append_text(self, kind: str, turn: int, text: str, attrs: bytes = b"") -> None:
        """Appends text under as few numbers as frames of bounded size allow.

        It comes with no change of the engine's state. A durable store has it at once if
        it can and has all that came before; another, when the tail gets long.
        """
        entry = text_entry(kind, self.head + 1, turn, text, attrs)
        if len(entry.body) > MAX_MERGED_BYTES and len(text) > 1:
            half = len(text) // 2
            self.append_text(kind, turn, text[:half], attrs)
            self.append_text(kind, turn, text[half:], attrs)
            return
        was_clean = self._settled == self.changes
        self._add(entry)
        if not self._durable:
            if self._tail.loose > SEAL_AFTER:
                self._mark()
        elif was_clean and not self.deleted and self._store.put_text(self.key, entry):
            self._committed = self.stored = entry.seq
            self._settled = self.changes
            if self._tail.loose > SEAL_AFTER:
                self._tail.seal(entry.seq)
            for wake in self._wakes:
                wake()
        else:
            self._mark()

    def adopt(self, entries: Sequence[Entry]) -> None:
        """Appends entries that were numbered elsewhere; only to an empty log."""
        assert self.head == 0, "only an empty log adopts entries"
        if not entries:
            return
        first = entries[0].first
        self.oldest = self._compact_from = self._keep_from = first
        self.stored = self._committed = self._counted = first - 1
        self._tail = Tail(first - 1)
        for entry in entries:
            self._add(entry)
        self.compact_soon()

    def remember(self, receipt: Receipt) -> None:
        """Keeps a command's receipt with the next commit."""
        self._receipts.append(receipt)
        self.touch()

    def touch(self) -> None:
        """Asks for a commit: the state, the receipts or the entries changed."""
        self.changes += 1
        self._only_text = False
        self._mark()

    def hurry(self) -> None:
        """Asks for the next commit to be soon, if there is one: somebody waits."""
        if self._durable and not self.clean:
            self._hurry()

    def keep_from(self, first: int) -> None:
        """Keeps the tail from this number on, until told another."""
        self._keep_from = first

    def compact_soon(self) -> None:
        """Joins, with the next commit, all rows since the last compaction."""
        self._compact_through = self.head
        self.touch()

    def trim(self, through: int) -> None:
        """Drops all up to `through` with the next commit."""
        self._trim_through = max(self._trim_through, through)
        self.oldest = max(self.oldest, through + 1)
        self.touch()

    def _add(self, entry: Entry) -> None:
        self._tail.add(entry)
        self.head = entry.seq
        self.changes += 1
        if not self._durable:
            self.stored = entry.seq
            for wake in self._wakes:
                wake()

    def _mark(self) -> None:
        if not self.dirty:
            self.dirty = True
            self._on_dirty(self)

    # Reading

    @property
    def settled(self) -> int:
        """How many of the changes a crash can't take back."""
        return self._settled if self._durable else self.changes

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` when `stored`, `settled` or `stalled` moved, or it is deleted or gone.

        A wake-up carries nothing and may come without cause. It must neither
        subscribe nor unsubscribe anybody.
        """
        self._wakes[wake] = None

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Undoes `subscribe`; harmless when it was not there."""
        self._wakes.pop(wake, None)

    def read(self, after: int, max_bytes: int) -> list[Entry] | None:
        """Returns visible entries from `after + 1` on, None if not in memory.

        Stops once the bodies exceed `max_bytes`.
        """
        stored = self.stored
        if after >= stored:
            return []
        tail = self._tail
        if after < tail.floor:
            after = max(after, self.oldest - 1)  # a trim may have overtaken a reader
            if after < tail.floor:
                return None
            if after >= stored:
                return []
        last = tail.entries[-1]
        if last.first == after + 1:
            return [last]  # no entry stands on both sides of what is stored
        return cut(tail.entries, after, stored, max_bytes)

    async def fetch(self, after: int, max_bytes: int) -> list[Entry]:
        """Returns the same from the store, with a hole where it lacks numbers.

        Nothing only where all of it was trimmed, or is lacking.

        Raises:
            LossError: It gives some twice, or in another order.
            StoreError: The store can't be read.
        """
        while True:
            after = max(after, self.oldest - 1)
            through = self._committed
            rows = await self._store.read(self.key, after, max_bytes)
            if (number := out_of_order(rows)) is not None:
                raise LossError(
                    f"{self.key}: the store gives number {number} twice or late"
                )
            found = cut(rows, after, through, max_bytes)
            if found or after >= self.oldest - 1:  # no trim has overtaken the read
                return found

    def tail(self, first: int) -> list[Entry]:
        """Returns what memory holds from `first` on, stored or not."""
        return cut(self._tail.entries, first - 1, self.head)

    def remembers(self, seq: int) -> bool:
        """Whether memory holds a number and all after it."""
        return seq > self._tail.floor

    async def load_tail(self, first: int, *, loose: bool = False) -> None:
        """Takes the entries from `first` on into memory; only after loading.

        Where the store lacks some, none: whoever reads all of it is told.

        Args:
            first: Their first number.
            loose: Whether they were never compacted; then a row begins with `first`.

        Raises:
            StoreError: The store can't be read.
        """
        assert not self._tail.entries, "the tail is loaded before anything is appended"
        position = max(first, self.oldest) - 1
        entries: list[Entry] = []
        try:
            while position < self.head and (
                batch := await self.fetch(position, MAX_MERGED_BYTES)
            ):
                if missing(batch, position + 1, position + 1) is not None:
                    return
                entries += batch
                position = batch[-1].seq
        except LossError:
            return
        if entries:
            self._tail = Tail(entries[0].first - 1, entries)
            self._keep_from = entries[0].first
            if loose:
                self._compact_from = entries[0].first

    # Committing

    @property
    def clean(self) -> bool:
        """Whether the store has everything."""
        return self._settled == self.changes

    def take_write(self) -> Write:
        """Returns what the store lacks; changes nothing it could lose."""
        self.dirty = False
        self._settling = self.changes
        if not self._only_text:
            self._only_text = True
            self._taken = self._snapshot()
        state, live = self._taken
        compacted: Sequence[Entry] = ()
        if self._compact_through >= self._compact_from:
            compacted = compact(self._tail.after(self._compact_from - 1))
        return Write(
            key=self.key,
            meta=Meta(
                epoch=self.epoch,
                head=self.head,
                oldest=self.oldest,
                live=live,
                state=state,
            ),
            entries=self._tail.after(self._committed),
            compacted=compacted,
            receipts=tuple(self._receipts),
            trim_through=self._trim_through,
        )

    def committed(self, write: Write) -> int:
        """Takes note that the store holds `write`, and wakes who follows.

        Returns:
            How many entries were stored since the last one, at once or with it.
        """
        meta = write.meta
        assert meta is not None, "only a write that deletes has no meta"
        self.kept = True
        self.stalled = False
        self._committed = meta.head
        if self._durable:
            self.stored = meta.head
        self._settled = self._settling
        del self._receipts[: len(write.receipts)]
        if write.trim_through == self._trim_through:
            self._trim_through = 0
        if write.compacted:
            self._compact_from = meta.head + 1
            self._tail.replace(write.compacted)
        elif self._tail.loose > SEAL_AFTER:
            self._tail.seal(meta.head)
        self._let_go(live=meta.live)
        if self._durable:
            tell_all(self._wakes)
        count, self._counted = meta.head - self._counted, meta.head
        return count

    def not_committed(self) -> None:
        """Takes note that `take_write`'s write failed; it stays due."""
        self.dirty = True

    def leave_uncompacted(self) -> None:
        """Lets rows be that can't be compacted; the next time begins after them."""
        self._compact_from = self._committed + 1
        self._compact_through = 0

    def stall(self) -> None:
        """Takes note that the store does not take it, and wakes who waits for that."""
        if self._durable and not self.stalled:
            self.stalled = True
            tell_all(self._wakes)

    def delete(self) -> None:
        """Ends the log in here; `go` has to follow."""
        self.deleted = True
        tell_all(self._wakes)

    def go(self) -> None:
        """Takes note that a crash does not bring it back, and tells who follows it."""
        self.gone = True
        tell_all(self._wakes)

    def _let_go(self, *, live: bool) -> None:
        """Drops what the store has and nobody in here needs."""
        if not live and self._tail.bytes() > IDLE_TAIL_BYTES:
            self._keep_from = self._compact_from = self._committed + 1
        self._tail.drop(min(self._keep_from, self._compact_from) - 1)
