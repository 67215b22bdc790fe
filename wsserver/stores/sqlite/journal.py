"""The journal of a SQLite store: text that is stored, and not yet in its rows.

While models stream, nearly all that comes is a little text of each of many
conversations. A transaction, a row, an entry in an index and a new head for each would
cost far more than the text. So text is copied to a file that is mapped into memory, and
outlives the process from then on. It gets to the rows of its conversation many tokens
at a time: with the conversation's next write that is more than text, such as the end of
its turn, or with all others' when the file is full.
What stands at or below `conversation.head` is in rows already, so it does no harm that
it stays in the file for a while.

The same text is in memory here, for reads.
"""

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
import structlog
from msgspec import structs

from wsserver.log.entry import TEXT_KINDS, Entry
from wsserver.log.store import Meta, Write
from wsserver.stores.rows import ROW_BYTES, Change, Row, does_not_follow, plan
from wsserver.stores.sqlite.commit import Changed, write_rows
from wsserver.stores.sqlite.text_files import TextFiles
from wsserver.stores.sqlite.text_records import label, record

log = structlog.get_logger(__name__)

FULL_BYTES = 2_097_152
"""How long a file gets before all text is moved: some 20,000 tokens. Moving a
conversation costs the same however little of it there is."""

MOVED_AT_ONCE = 64
"""Of how many conversations text is moved in one transaction, 1 ms or so: a commit
waits for it that somebody may wait for."""

_encode = msgspec.msgpack.Encoder().encode


class Journal:
    """Text goes to a file from the event loop, all else to rows in another thread.

    Of a conversation that a commit under way writes, no text may come.
    """

    def __init__(self, files: TextFiles) -> None:
        self._files = files
        self._texts: dict[str, _Text] = {}  # of live conversations
        self._unmoved: list[str] | None = None  # whose text a move has still to take
        self._clears = False  # whether that move ends with an empty file

    # In the event loop

    def put(self, key: str, entry: Entry) -> bool:
        """Stores text of a live conversation; returns whether it did."""
        text = self._texts.get(key)
        if text is None or entry.first != text.head + 1 or entry.kind not in TEXT_KINDS:
            return False
        blob = _encode(entry)
        if not self._files.append(record(text.label, blob)):
            return False
        text.add(entry, blob)
        return True

    @property
    def full(self) -> bool:
        """Whether it is time to move all text to rows."""
        return self._files.size > FULL_BYTES

    @property
    def retired(self) -> bool:
        """Whether a file waits for its text to be moved."""
        return self._files.retired

    def retire(self) -> None:
        """Lets text go to another file, so that this one can be cleared."""
        self._files.retire()

    # From any thread

    def text(self, key: str) -> tuple[str, list[Entry]]:
        """Returns the epoch of a conversation and what rows of that epoch lack now.

        What is read from rows afterwards may have some of it, see `joined`.
        """
        text = self._texts.get(key)
        return (text.epoch, text.entries.copy()) if text else ("", [])

    # In the writing thread

    def put_all(self, writes: Sequence[Write]) -> bool:
        """Stores writes that are text alone; returns whether it did, all or nothing.

        It waits for the medium. No text may come from the event loop.

        Raises:
            OSError: The medium can't be written.
        """
        added: list[tuple[_Text, Entry, bytes]] = []
        for write in writes:
            text = self._texts.get(write.key)
            if text is None or not text.goes_on(write):
                return False
            added += [(text, entry, _encode(entry)) for entry in write.entries]
        records = b"".join([record(text.label, blob) for text, _, blob in added])
        if not self._files.append_and_sync(records):
            return False
        for text, entry, blob in added:
            text.add(entry, blob)
        return True

    def commit(
        self, connection: sqlite3.Connection, writes: Sequence[Write], now: float
    ) -> int:
        """Writes all or nothing; returns about how many pages that took.

        Raises:
            StoreError: A write does not fit what is stored.
            sqlite3.Error: The file can't be written.
        """
        gone = [write.key for write in writes if write.delete]
        changes = [
            (write, self._change(write, now, gone))
            for write in writes
            if not write.delete
        ]
        # What is dropped is to stay nowhere, so the file that may have it is cleared.
        moves: list[Changed] = []
        clear = drops(writes) and self._files.retired
        if clear:
            moves = self._moves(now, self._texts.keys() - {w.key for w in writes})
        pages = write_rows(connection, gone, [*changes, *moves], now)
        for key in gone:
            self._texts.pop(key, None)
        for write, _ in changes:
            self._note_rows(write)
        self._note_moved(moves)
        if clear:
            try:
                self._end_move(clear=True)
            except OSError as error:  # it stays retired: the next move tries again
                log.warning("store_text_not_cleared", error=str(error))
        return pages

    def move(self, connection: sqlite3.Connection, now: float) -> int:
        """Moves text of a few conversations; returns about how many pages that took.

        Call it until `moving` says that the text of the file that was retired is in
        rows; other commits have their turns in between.

        Raises:
            OSError: Text is in rows, but what was retired can't be cleared.
            sqlite3.Error: The file can't be written.
        """
        if self._unmoved is None:
            self._clears = self._files.retired  # what is retired later has newer text
            self._unmoved = [key for key, text in self._texts.items() if text.blobs]
        keys = self._unmoved[:MOVED_AT_ONCE]
        moves = self._moves(now, keys)
        pages = 0
        if moves:
            pages = write_rows(connection, (), moves, now)
            self._note_moved(moves)
        del self._unmoved[: len(keys)]
        if not self._unmoved:
            self._end_move(clear=self._clears)
        return pages

    @property
    def moving(self) -> bool:
        """Whether a move was begun and not ended."""
        return self._unmoved is not None

    def move_all(self, connection: sqlite3.Connection, now: float) -> int:
        """Moves all text to rows; returns about how many pages that took.

        Raises:
            OSError, sqlite3.Error: As `move`.
        """
        self._unmoved = None
        pages = self.move(connection, now)
        while self.moving:
            pages += self.move(connection, now)
        return pages

    def close(self) -> None:
        """Lets go of the files; what is in them stays for `recover`."""
        self._files.close()

    def _end_move(self, *, clear: bool) -> None:
        self._unmoved = None
        if clear:
            self._files.clear()

    def _moves(self, now: float, keys: Iterable[str]) -> list[Changed]:
        return [
            text.moved(key, now)
            for key in keys
            if (text := self._texts.get(key)) is not None and text.blobs
        ]

    def _change(self, write: Write, now: float, gone: Sequence[str]) -> Change:
        """Returns what a write and the text before it do to rows.

        Raises:
            StoreError: It does not follow on that text.
        """
        text = self._texts.get(write.key)
        if text is None or not text.blobs or write.key in gone:
            return plan(write, now)
        assert write.meta is not None, "only a write that deletes has no meta"
        entries = write.entries
        begin = entries[0].first if entries else write.meta.head + 1
        if begin != text.head + 1:
            raise does_not_follow(write.key)
        _, change = text.moved(write.key, now)
        if write.compacted:
            return plan(structs.replace(write, entries=[*text.entries, *entries]), now)
        return Change(
            appended=change.appended,
            dropped=None,
            rows=[*change.rows, *plan(write, now).rows],
        )

    def _note_rows(self, write: Write) -> None:
        meta = write.meta
        assert meta is not None, "only a write that deletes has no meta"
        if meta.live:
            self._texts[write.key] = _Text(write.key, meta)
        else:
            self._texts.pop(write.key, None)

    def _note_moved(self, moves: Sequence[Changed]) -> None:
        for write, change in moves:
            assert write.meta is not None, "a move has one"
            count = sum([len(row.entries) for row in change.rows])
            self._texts[write.key].drop(count, write.meta)


def drops(writes: Sequence[Write]) -> bool:
    """Whether a commit drops anything; the file that is written is retired first."""
    return any(write.delete or write.trim_through for write in writes)


class _Text:
    """Text of one live conversation.

    Attributes:
        epoch: The conversation's.
        label: What its records begin with.
        head: The last number, of it or of the rows.
        entries: It, in order.
        blobs: The same in MessagePack; an entry gets here last.
    """

    __slots__ = ("_meta", "blobs", "entries", "epoch", "head", "label")

    def __init__(self, key: str, meta: Meta) -> None:
        self.epoch = meta.epoch
        self.label = label(key, meta.epoch)
        self.head = meta.head
        self.entries: list[Entry] = []
        self.blobs: list[bytes] = []
        self._meta = meta  # as rows have it

    def add(self, entry: Entry, blob: bytes) -> None:
        """Takes the entry that follows the last one, and what its row would hold."""
        self.head = entry.seq
        self.entries.append(entry)
        self.blobs.append(blob)

    def goes_on(self, write: Write) -> bool:
        """Whether a write brings text that follows, and nothing else."""
        meta, entries = write.meta, write.entries
        return (
            meta is not None
            and meta == structs.replace(self._meta, head=meta.head)
            and not (write.compacted or write.receipts or write.trim_through)
            and bool(entries)
            and entries[0].first == self.head + 1
            and all([entry.kind in TEXT_KINDS for entry in entries])  # noqa: C419 - faster
        )

    def moved(self, key: str, now: float) -> Changed:
        """Returns what takes to rows all that is here now; more may come meanwhile."""
        count = len(self.blobs)
        entries = self.entries[:count]
        write = Write(
            key=key,
            meta=structs.replace(self._meta, head=entries[-1].seq),
            entries=entries,
        )
        blob = b"".join(self.blobs[:count])
        if len(blob) > ROW_BYTES:
            return write, plan(write, now)
        size = sum([len(entry.body) for entry in entries])
        row = Row(entries[0].first, entries[-1].seq, now, size, False, entries, blob)
        return write, Change(appended=entries[0].first, dropped=None, rows=[row])

    def drop(self, count: int, meta: Meta) -> None:
        """Takes note that the first entries are in rows, which are as `meta` says."""
        self._meta = meta
        del self.blobs[:count]
        del self.entries[:count]
