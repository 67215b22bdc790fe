"""Reading a conversation's entries out of a SQLite file, whoever has it open."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from wsserver.log.entry import Entry
from wsserver.log.store import Meta
from wsserver.stores.rows import take
from wsserver.stores.sqlite.sql import statement

T = TypeVar("T")

_META = statement("meta")
_READ = statement("read")
_entries = msgspec.msgpack.Decoder(list[Entry])


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """All that is read inside is as it was at one moment.

    Raises:
        sqlite3.Error: The file can't be read.
    """
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def read_entries(
    connection: sqlite3.Connection, key: str, after: int, max_bytes: int
) -> list[Entry]:
    """Returns entries from `after + 1` on that are in rows; as `Store.read`.

    Raises:
        sqlite3.Error: They can't be read, or are damaged.
    """
    values = {"key": key, "after": after, "max_bytes": max_bytes}
    row = connection.execute(_READ, values).fetchone()
    count, first, last, numbers, blob = row
    if not count:
        return []
    entries = decode(_entries, count, blob)
    if numbers != last - first + 1 or entries[-1].seq != last:
        raise damaged()
    return take(entries, after, max_bytes)


def read_meta(connection: sqlite3.Connection, key: str) -> Meta | None:
    """Returns what rows say of a conversation, None if there is none.

    Raises:
        sqlite3.Error: It can't be read.
    """
    row = connection.execute(_META, {"key": key}).fetchone()
    if row is None:
        return None
    epoch, head, oldest, live, state = row
    return Meta(epoch=epoch, head=head, oldest=oldest, live=bool(live), state=state)


def joined(
    rows: list[Entry], text: Sequence[Entry], after: int, max_bytes: int
) -> list[Entry]:
    """Returns what was read from rows and the text that follows, as `Store.read`.

    Args:
        rows: Entries from `after + 1` on, read later than `text` or with it.
        text: What the journal holds of the conversation.
        after: The number before those that are wanted.
        max_bytes: How much is wanted.
    """
    last = rows[-1].seq if rows else after
    newer = [entry for entry in text if entry.seq > last]
    if not newer or newer[0].first > last + 1:  # there are more rows to come
        return rows
    return take([*rows, *newer], after, max_bytes)


def decode(
    decoder: msgspec.msgpack.Decoder[list[T]], count: int, blob: bytes
) -> list[T]:
    """Decodes elements that were stored without their array's head.

    Raises:
        sqlite3.DatabaseError: They are damaged.
    """
    try:
        return decoder.decode(b"\xdd" + count.to_bytes(4, "big") + blob)
    except msgspec.DecodeError as error:
        raise damaged() from error


def damaged() -> sqlite3.DatabaseError:
    """Makes the error for what can't be what was written."""
    return sqlite3.DatabaseError("entries are damaged")
