"""Writing rows of the SQLite store: writes in, a few statements out.

However many conversations are written, each statement takes all of them at once
(their values as one JSON array, their blobs joined): each step of a statement gives
the interpreter's lock away, and behind a busy event loop getting it back is what a
commit would mostly wait for.
"""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec
import orjson

from wsserver.log.entry import Entry
from wsserver.log.store import RECEIPTS_KEPT, RECEIPTS_KEPT_SECONDS, Write
from wsserver.stores.rows import Change, does_not_follow, misaligned
from wsserver.stores.sqlite.sql import statement

_DELETE = statement("delete")
_WRITE_META = statement("write_meta")
_NOT_FOLLOWING = statement("not_following")
_CUT_ROWS = statement("cut_rows")
_DROP_ROWS = statement("drop_rows")
_WRITE_ROWS = statement("write_rows")
_WRITE_RECEIPTS = statement("write_receipts")
_PRUNE_RECEIPTS = statement("prune_receipts")

PAGE_BYTES = 4096
"""How large SQLite makes the pages of a new file."""

Changed = tuple[Write, Change]
"""A write that does not delete, and what it does to rows."""

_encode = msgspec.msgpack.Encoder().encode


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


def write_rows(
    connection: sqlite3.Connection,
    gone: Sequence[str],
    changes: Sequence[Changed],
    now: float,
) -> int:
    """Writes what no journal holds; returns about how many pages that took.

    Deletions go first, so one commit may delete a conversation and begin it anew.
    Use it in a transaction.

    Args:
        connection: Of the writing thread.
        gone: The conversations to delete.
        changes: What is to be written of others.
        now: Seconds since the epoch.

    Raises:
        StoreError: A write does not fit what is stored.
        sqlite3.Error: The file can't be written.
    """
    if gone:
        connection.execute(_DELETE, {"keys": _json(gone)})
    pages = _write_metas(connection, changes, now)
    _drop_compacted(connection, changes)
    pages += _write_entries(connection, changes, now)
    trims = [(w.key, 0, w.trim_through) for w, _ in changes if w.trim_through]
    if trims:
        connection.execute(_DROP_ROWS, {"ranges": _json(trims)})
    _write_receipts(connection, changes, now)
    return pages


def _write_metas(
    connection: sqlite3.Connection, changes: Sequence[Changed], now: float
) -> int:
    states = _Joined()
    metas: list[object] = []
    for write, change in changes:
        meta = write.meta
        assert meta is not None, "only a write that deletes has no meta"
        metas.append(
            (
                write.key,
                meta.epoch,
                meta.head,
                meta.oldest,
                int(meta.live),
                *states.add(meta.state),
                change.appended,
            )
        )
    if not metas:
        return 0
    values = {"metas": _json(metas), "states": states.bytes(), "now": now}
    try:
        connection.execute(_WRITE_META, values)
    except sqlite3.IntegrityError as error:
        found = connection.execute(_NOT_FOLLOWING, {"metas": values["metas"]})
        raise does_not_follow(found.fetchone()[0]) from error
    return len(metas) + states.pages


def _drop_compacted(connection: sqlite3.Connection, changes: Sequence[Changed]) -> None:
    ranges = [
        (write.key, *change.dropped) for write, change in changes if change.dropped
    ]
    if not ranges:
        return
    edges = [(key, seq) for key, first, last in ranges for seq in (first - 1, last)]
    cut = connection.execute(_CUT_ROWS, {"edges": _json(edges)}).fetchone()
    if cut:
        raise misaligned(cut[0])
    connection.execute(_DROP_ROWS, {"ranges": _json(ranges)})


def _write_entries(
    connection: sqlite3.Connection, changes: Sequence[Changed], now: float
) -> int:
    entries = _Joined()
    rows: list[object] = []
    for write, change in changes:
        for row in change.rows:
            place = entries.add(row.encoded or encoded(row.entries))
            rows.append(
                (
                    write.key,
                    row.first,
                    row.last,
                    row.bytes,
                    int(row.ends_turn),
                    len(row.entries),
                    *place,
                )
            )
    if rows:
        connection.execute(
            _WRITE_ROWS, {"rows": _json(rows), "entries": entries.bytes(), "now": now}
        )
    return len(rows) + entries.pages


def encoded(entries: Sequence[Entry]) -> bytes:
    """Returns entries as a row has them: without the array's head."""
    count = len(entries)
    assert count < 65_536, "`ROW_BYTES` leaves room for no more"
    return _encode(entries)[1 if count < 16 else 3 :]


def _write_receipts(
    connection: sqlite3.Connection, changes: Sequence[Changed], now: float
) -> None:
    receipts = _Joined()
    given: list[object] = []
    senders: set[tuple[str, str]] = set()
    for write, _ in changes:
        for receipt in write.receipts:
            place = receipts.add(_encode(receipt))
            given.append((write.key, receipt.principal, receipt.id, receipt.at, *place))
            senders.add((write.key, receipt.principal))
    if not given:
        return
    connection.execute(
        _WRITE_RECEIPTS, {"given": _json(given), "receipts": receipts.bytes()}
    )
    connection.execute(
        _PRUNE_RECEIPTS,
        {
            "senders": _json(list(senders)),
            "since": now - RECEIPTS_KEPT_SECONDS,
            "kept": RECEIPTS_KEPT,
        },
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


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
    def pages(self) -> int:
        """About how many pages of the file they fill."""
        return self._end // PAGE_BYTES
