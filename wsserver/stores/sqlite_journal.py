"""The journal of a SQLite store: text that is stored, and not yet in its rows.

While models stream, nearly all that is committed is a little text of each of many
conversations. A row, an entry in an index and a new head for each of them would cost
far more than the text. So all text of a commit goes down as one row of the table
`journal`. It gets to the rows of its conversation many tokens at a time: with the
conversation's next write that is more than text, such as the end of its turn, or with
all others' when the journal is full. What stands at or below `conversation.head` is
in rows already, so it does no harm that it stays in the journal for a while.

The same text is in memory here, for reads.
"""

import sqlite3
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec
from msgspec import structs

from wsserver.log.entry import TEXT_KINDS, Entry
from wsserver.log.store import Meta, Write
from wsserver.stores.rows import ROW_BYTES, Change, Row, does_not_follow, plan
from wsserver.stores.sql import statement
from wsserver.stores.sqlite_commit import (
    PAGE_BYTES,
    encoded,
    transaction,
    write_rows,
)
from wsserver.stores.sqlite_read import damaged, read_journal, read_meta

FULL_BYTES = 524_288
"""How much the journal holds before all of it is moved: some 7,000 tokens."""

_MOST = 1_000  # entries of one conversation; more of them are rather rows at once

_APPEND = statement("journal_append")
_CLEAR = statement("journal_clear")

_encode = msgspec.msgpack.Encoder().encode


class Journal:
    """Writes commits: text to the journal, all else to rows.

    For the writing thread, but for `text`.
    """

    def __init__(self) -> None:
        self._bytes = 0  # that the table holds, moved or not
        self._at = 0.0  # when it was appended to last
        self._texts: dict[str, _Text] = {}
        self._metas: dict[str, Meta] = {}  # as written last, of live conversations

    def load(self, connection: sqlite3.Connection) -> None:
        """Takes over what a process that was killed left in the table.

        Raises:
            sqlite3.Error: It can't be read, or is damaged.
        """
        left = read_journal(connection)
        self._bytes, self._at = left.bytes, left.at
        for key, text in left.texts.items():
            meta = read_meta(connection, key)
            if meta is None:
                raise damaged()
            newer = [entry for entry in text if entry.seq > meta.head]
            if newer:
                if newer[0].first != meta.head + 1:
                    raise damaged()
                self._texts[key] = _Text()
                self._texts[key].add(newer, encoded(newer))
                self._metas[key] = structs.replace(meta, head=newer[-1].seq)

    def text(self, key: str) -> list[Entry]:
        """Returns what a conversation's rows lack now; from any thread.

        What is read from rows afterwards may have some of it, see `joined`.
        """
        text = self._texts.get(key)
        return text.entries.copy() if text else []

    @property
    def full(self) -> bool:
        """Whether it is time to move all text to rows."""
        return self._bytes > FULL_BYTES

    def commit(
        self, connection: sqlite3.Connection, writes: Sequence[Write], now: float
    ) -> int:
        """Writes all or nothing; returns about how many pages that took.

        Raises:
            StoreError: A write does not fit what is stored.
            sqlite3.Error: The file can't be written.
        """
        texts: list[tuple[Write, bytes]] = []
        others: list[Write] = []
        for write in writes:
            if self._is_text(write):
                texts.append((write, encoded(write.entries)))
            else:
                others.append(write)
        # What is dropped is to stay nowhere; and what can't be moved is not to grow
        # for ever: then commits fail.
        if self._bytes > 2 * FULL_BYTES or any(
            write.delete or write.trim_through for write in others
        ):
            others += self._moves({write.key for write in others})
        if not others:  # one statement is a transaction of its own
            size = _append(connection, texts, now)
            self._note_text(texts, size, now)
            return size // PAGE_BYTES + 2
        with transaction(connection):
            pages, empty = self._write_rows(connection, others, now)
            size = _append(connection, texts, now)
        self._note_rows(others, empty=empty)
        self._note_text(texts, size, now)
        return pages + size // PAGE_BYTES + 2

    def move(self, connection: sqlite3.Connection) -> int:
        """Moves all text to rows; returns about how many pages that took.

        Raises:
            sqlite3.Error: The file can't be written.
        """
        moves = self._moves()
        with transaction(connection):
            pages, empty = self._write_rows(connection, moves, self._at)
        self._note_rows(moves, empty=empty)
        return pages

    def _is_text(self, write: Write) -> bool:
        last, meta, entries = self._metas.get(write.key), write.meta, write.entries
        return (
            last is not None
            and meta is not None
            and not (write.compacted or write.receipts or write.trim_through)
            and 0 < len(entries) <= _MOST
            and entries[0].first == last.head + 1
            and meta.state == last.state
            and meta.oldest == last.oldest
            and meta.live
            and meta.epoch == last.epoch
            and all([entry.kind in TEXT_KINDS for entry in entries])  # noqa: C419 - faster
        )

    def _moves(self, but: AbstractSet[str] = frozenset()) -> list[Write]:
        keys = self._texts.keys() - but
        return [Write(key=key, meta=self._metas[key]) for key in keys]

    def _write_rows(
        self, connection: sqlite3.Connection, writes: Sequence[Write], now: float
    ) -> tuple[int, bool]:
        """Writes with the text before them; says whether the journal is empty then."""
        gone = [write.key for write in writes if write.delete]
        changes = [
            (write, self._change(write, now, gone))
            for write in writes
            if not write.delete
        ]
        pages = write_rows(connection, gone, changes, now)
        empty = not self._texts.keys() - {write.key for write in writes}
        if empty and self._bytes:
            connection.execute(_CLEAR)
        return pages, empty

    def _change(self, write: Write, now: float, gone: Sequence[str]) -> Change:
        """Returns what a write and the text before it do to rows.

        Raises:
            StoreError: It does not follow on that text.
        """
        text = self._texts.get(write.key)
        if text is None or write.key in gone:
            return plan(write, now)
        assert write.meta is not None, "only a write that deletes has no meta"
        entries = write.entries
        begin = entries[0].first if entries else write.meta.head + 1
        if begin != text.entries[-1].seq + 1:
            raise does_not_follow(write.key)
        if write.compacted or len(text.encoded) > ROW_BYTES:
            return plan(structs.replace(write, entries=[*text.entries, *entries]), now)
        return Change(
            appended=text.entries[0].first,
            dropped=None,
            rows=[text.row(now), *plan(write, now).rows],
        )

    def _note_rows(self, written: Sequence[Write], *, empty: bool) -> None:
        if empty:
            self._bytes = 0
        for write in written:
            self._texts.pop(write.key, None)
            if write.meta is not None and write.meta.live:
                self._metas[write.key] = write.meta
            else:
                self._metas.pop(write.key, None)

    def _note_text(
        self, written: Sequence[tuple[Write, bytes]], size: int, now: float
    ) -> None:
        self._bytes, self._at = self._bytes + size, now
        for write, blob in written:
            assert write.meta is not None, "only a write that deletes has no meta"
            self._metas[write.key] = write.meta
            text = self._texts.get(write.key)
            if text is None:
                text = self._texts[write.key] = _Text()
            text.add(write.entries, blob)


class _Text:
    """Text of one conversation.

    Attributes:
        entries: It, in order.
        encoded: The same as it will be in a row, see `encoded`.
    """

    __slots__ = ("_bodies", "encoded", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.encoded = bytearray()
        self._bodies = 0

    def add(self, entries: Sequence[Entry], blob: bytes) -> None:
        """Takes entries that follow, and the same `encoded`."""
        self.entries += entries
        self.encoded += blob
        for entry in entries:
            self._bodies += len(entry.body)

    def row(self, at: float) -> Row:
        """Returns it as one row."""
        first, last = self.entries[0].first, self.entries[-1].seq
        blob = bytes(self.encoded)
        return Row(first, last, at, self._bodies, False, self.entries, blob)


def _append(
    connection: sqlite3.Connection, texts: Sequence[tuple[Write, bytes]], now: float
) -> int:
    """Appends to the table; returns how many bytes."""
    if not texts:
        return 0
    blob = _encode([(write.key, len(write.entries), text) for write, text in texts])
    connection.execute(_APPEND, (now, blob))
    return len(blob)
