"""Reading a conversation's entries out of a SQLite file, whoever has it open."""

import sqlite3
from typing import TypeVar

import msgspec

from wsserver.log.entry import Entry
from wsserver.stores.rows import take
from wsserver.stores.sql import statement

T = TypeVar("T")

_READ = statement("read")
_entries = msgspec.msgpack.Decoder(list[Entry])


def read_entries(
    connection: sqlite3.Connection, key: str, after: int, max_bytes: int
) -> list[Entry]:
    """Returns entries from `after + 1` on; as `Store.read`.

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
        raise _damaged()
    return take(entries, after, max_bytes)


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
        raise _damaged() from error


def _damaged() -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError("entries are damaged")
