"""Writing rows of the SQLite store: writes in, one statement out.

However many conversations are written, the statement takes all of them at once: their
values as one JSON array, their blobs joined. See `commit.sql` for the reason. Only what
is very long takes several, in one transaction.
"""

import re
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import msgspec
import orjson

from wsserver.log.entry import Entry
from wsserver.log.store import (
    RECEIPTS_KEPT,
    RECEIPTS_KEPT_SECONDS,
    MisfitError,
    Write,
)
from wsserver.stores.rows import Change, Row, does_not_follow, misaligned
from wsserver.stores.sqlite.sql import statement

_PREPARE = statement("commit")
_COMMIT = """
INSERT INTO commit_of VALUES (
  :now, :gone, :metas, :states, :edges, :dropped, :batches, :entries, :trimmed, :given,
  :receipts, :senders, :since, :kept
)
"""
_NAMES = re.findall(r":(\w+)", _COMMIT)
_NOT_FOLLOWING = statement("not_following")
_CUT_ROWS = statement("cut_rows")

MOST_BYTES = 16_777_216
"""How much of entries one statement takes. SQLite takes no blob beyond 1 GB, and a fork
may be as long; besides, what is joined is in memory a few times."""

PAGE_BYTES = 4096
"""How large SQLite makes the pages of a new file."""

Changed = tuple[Write, Change]
"""A write that does not delete, and what it does to rows."""

_encode = msgspec.msgpack.Encoder().encode


def prepare(connection: sqlite3.Connection) -> None:
    """Lets a connection write rows.

    Raises:
        sqlite3.Error: It can't.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.executescript(_PREPARE)


def write_rows(
    connection: sqlite3.Connection,
    gone: Sequence[str],
    changes: Sequence[Changed],
    now: float,
) -> int:
    """Writes what no journal holds, all or nothing; returns about how many pages.

    Deletions go first, so one commit may delete a conversation and begin it anew.

    Args:
        connection: One that was prepared.
        gone: The conversations to delete.
        changes: What is to be written of others.
        now: Seconds since the epoch.

    Raises:
        StoreError: A write does not fit what is stored.
        sqlite3.Error: The file can't be written.
    """
    commit = _Commit(gone, now)
    for write, change in changes:
        commit.add(write, change)
    alone = not commit.is_long or connection.in_transaction
    try:
        with nullcontext() if alone else transaction(connection):
            # Not `execute`, which hands over the lock once more, for the new row's number.
            connection.executemany(_COMMIT, commit.values())
    except sqlite3.IntegrityError as error:
        misfit = _misfit(connection, next(commit.values()))
        if misfit is None:
            raise
        raise misfit from error
    return commit.pages


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Everything inside happens, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise


def _misfit(
    connection: sqlite3.Connection, values: Mapping[str, object]
) -> MisfitError | None:
    """Returns what does not fit of a commit that was refused; nothing was written."""
    if found := connection.execute(_NOT_FOLLOWING, values).fetchone():
        return does_not_follow(found[0])
    if found := connection.execute(_CUT_ROWS, values).fetchone():
        return misaligned(found[0])
    return None


def encoded(entries: Sequence[Entry]) -> bytes:
    """Returns entries as a row has them: without the array's head."""
    count = len(entries)
    assert count < 65_536, "`ROW_BYTES` leaves room for no more"
    return _encode(entries)[1 if count < 16 else 3 :]


def _json(value: Sequence[object]) -> str | None:
    """Returns what SQL's `json_each` takes apart; for none it needs no text."""
    return orjson.dumps(value).decode() if value else None


class _Batches:
    """Rows of entries that one statement takes."""

    def __init__(self) -> None:
        self._values: list[object] = []
        self._entries = _Joined()

    @property
    def full(self) -> bool:
        return self._entries.length > MOST_BYTES

    @property
    def pages(self) -> int:
        """About how many pages of the file they take."""
        return len(self._values) + self._entries.pages

    def add(self, key: str, row: Row) -> None:
        self._values.append(
            (
                key,
                row.first,
                row.last,
                row.bytes,
                int(row.ends_turn),
                len(row.entries),
                *self._entries.add(row.encoded or encoded(row.entries)),
            )
        )

    def values(self) -> dict[str, object]:
        return {"batches": _json(self._values), "entries": self._entries.bytes()}


class _Commit:
    """What the statement is given, once or several times."""

    def __init__(self, gone: Sequence[str], now: float) -> None:
        self._now = now
        self._gone = gone
        self._metas: list[object] = []
        self._states = _Joined()
        self._dropped: list[tuple[str, int, int]] = []
        self._batches = [_Batches()]
        self._trimmed: list[object] = []
        self._given: list[object] = []
        self._receipts = _Joined()
        self._senders: dict[tuple[str, str], None] = {}

    def add(self, write: Write, change: Change) -> None:
        key, meta = write.key, write.meta
        assert meta is not None, "only a write that deletes has no meta"
        self._metas.append(
            (
                key,
                meta.epoch,
                meta.head,
                meta.oldest,
                int(meta.live),
                *self._states.add(meta.state),
                change.appended,
            )
        )
        if change.dropped:
            self._dropped.append((key, *change.dropped))
        for row in change.rows:
            if self._batches[-1].full:
                self._batches.append(_Batches())
            self._batches[-1].add(key, row)
        if write.trim_through:
            self._trimmed.append((key, write.trim_through))
        for receipt in write.receipts:
            place = self._receipts.add(_encode(receipt))
            self._given.append((key, receipt.principal, receipt.id, receipt.at, *place))
            self._senders[key, receipt.principal] = None

    @property
    def is_long(self) -> bool:
        """Whether the statement is needed more than once."""
        return len(self._batches) > 1

    def values(self) -> Iterator[dict[str, object]]:
        """Returns what the statement's names stand for, each time.

        What rows go by comes with the first of them, what goes by rows with the last.
        """
        for batches in self._batches:
            values = dict.fromkeys(_NAMES) | batches.values()
            if batches is self._batches[0]:
                values |= self._first()
            if batches is self._batches[-1]:
                values |= self._last()
            yield values | {"now": self._now}

    @property
    def pages(self) -> int:
        """About how many pages of the file it writes."""
        entries = sum([batches.pages for batches in self._batches])
        return len(self._metas) + self._states.pages + entries

    def _first(self) -> dict[str, object]:
        edges = [
            (key, seq)
            for key, first, last in self._dropped
            for seq in (first - 1, last)
        ]
        return {
            "gone": _json(self._gone),
            "metas": _json(self._metas),
            "states": self._states.bytes(),
            "edges": _json(edges),
            "dropped": _json(self._dropped),
        }

    def _last(self) -> dict[str, object]:
        return {
            "trimmed": _json(self._trimmed),
            "given": _json(self._given),
            "receipts": self._receipts.bytes(),
            "senders": _json(list(self._senders)),
            "since": self._now - RECEIPTS_KEPT_SECONDS,
            "kept": RECEIPTS_KEPT,
        }


class _Joined:
    """Blobs joined to one; SQL's `substr` takes them apart again."""

    def __init__(self) -> None:
        self._parts = [b"\0"]  # `substr` of a blob of no bytes would be NULL
        self._end = 2

    def add(self, blob: bytes) -> tuple[int, int]:
        """Returns where the blob begins, counted from 1, and its length."""
        begin = self._end
        self._parts.append(blob)
        self._end += len(blob)
        return begin, len(blob)

    def bytes(self) -> bytes:
        return b"".join(self._parts)

    @property
    def length(self) -> int:
        """How many bytes they have."""
        return self._end - 2

    @property
    def pages(self) -> int:
        """About how many pages of the file they fill."""
        return self._end // PAGE_BYTES
