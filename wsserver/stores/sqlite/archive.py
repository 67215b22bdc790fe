"""A SQLite store as others than its server see it: what is in it, without changes.

May be used while a server has the file open, or after it was killed. Each read is
short, since one that lasts would keep the server from emptying its write-ahead log.
Text that has not got to rows yet is read before them, so that none that moves
meanwhile is missed. Everything here blocks.
"""

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from wsserver.log.entry import Entry
from wsserver.log.reading import READ_BYTES
from wsserver.log.store import StoreError
from wsserver.stores.rows import take
from wsserver.stores.sqlite.file import check_ours, explained, located
from wsserver.stores.sqlite.read import read_entries, read_meta, snapshot
from wsserver.stores.sqlite.sql import statement
from wsserver.stores.sqlite.text_files import Left, read_text_files

_BUSY_SECONDS = 5.0
_PAGE = 200
_SHOWN = 20  # of the conversations that a name may mean

_CONVERSATIONS = statement("conversations")
_NAMED = statement("conversations_named")


class Kept(Struct, frozen=True, kw_only=True):
    """What is kept of one conversation.

    Attributes:
        key: `SPACE/ID`.
        epoch: Of its numbers.
        oldest: The first number that is kept; `head + 1` when none is.
        head: The last number.
        bytes: The length of all that is kept.
        live: Whether a turn ran or a message waited when it was written last.
        written: When that was, in seconds since the epoch.
    """

    key: str
    epoch: str
    oldest: int
    head: int
    bytes: int
    live: bool
    written: float


class Archive:
    """An open file, for one thread at a time; close it after use."""

    def __init__(self, path: Path) -> None:
        """Opens a file that is there.

        Raises:
            StoreError: There is none, or it is no store.
        """
        self.path = located(path)
        if not self.path.exists():
            raise StoreError(
                f"{self.path}: there is no such file; name the server's with"
                " `--store sqlite:PATH`"
            )
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(str(self.path))}?mode=ro",
                uri=True,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                check_ours(self._connection, self.path)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    def conversations(self, space: str | None = None) -> Iterator[Kept]:
        """Yields what is kept of each conversation, by their keys.

        Args:
            space: Only those of this one.

        Raises:
            StoreError: The file can't be read.
        """
        after = ""
        while page := self._kept(
            _CONVERSATIONS, {"after": after, "space": space, "limit": _PAGE}
        ):
            yield from page
            after = page[-1].key

    def find(self, name: str) -> Kept:
        """Returns the conversation of a key, or of an id that only one space has.

        Raises:
            StoreError: There is none, or there are several; or the file can't be read.
        """
        named = self._kept(_NAMED, {"name": name, "limit": _SHOWN})
        found = {kept.key: kept for kept in named}
        if name in found:
            return found[name]
        if len(found) > 1:
            keys = ", ".join(found)
            raise StoreError(f"several spaces have {name}; say which: {keys}")
        if found:
            return found.popitem()[1]
        raise StoreError(
            f"{self.path} has no conversation {name}; `wsserver conversations list`"
            " shows what it has"
        )

    def entries(self, kept: Kept) -> Iterator[Entry]:
        """Yields the entries of a conversation up to the head that was found.

        Raises:
            StoreError: They can't be read, or retention dropped some meanwhile.
        """
        after = kept.oldest - 1
        while after < kept.head:
            with self._reading() as left:
                meta = read_meta(self._connection, kept.key)
                rows = read_entries(self._connection, kept.key, after, READ_BYTES)
            last = rows[-1].seq if rows else after
            text = left.after(kept.key, kept.epoch, last)
            batch = take([*rows, *text], after, READ_BYTES)
            same = meta is not None and meta.epoch == kept.epoch
            if not (same and batch) or batch[0].first > after + 1:
                raise StoreError(
                    f"{kept.key} was shortened or deleted meanwhile; try again"
                )
            for entry in batch:
                if entry.first > kept.head:
                    return
                yield entry.part(after, kept.head)
                after = entry.seq

    def _kept(self, sql: str, values: Mapping[str, Any]) -> list[Kept]:
        with self._reading() as left:
            rows = self._connection.execute(sql, values).fetchall()
        return [_kept(row, left) for row in rows]

    @contextmanager
    def _reading(self) -> Generator[Left]:
        """Gives the text that the rows lack, or do not lack, that are read inside."""
        try:
            left = read_text_files(self.path)
            with snapshot(self._connection):
                yield left
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self.path) from error


def _kept(row: tuple[Any, ...], left: Left) -> Kept:
    key, epoch, head, oldest, live, written, size = row
    text = left.after(key, epoch, head)
    return Kept(
        key=key,
        epoch=epoch,
        oldest=oldest,
        head=text[-1].seq if text else head,
        bytes=size + sum([len(entry.body) for entry in text]),
        live=bool(live),
        written=max(written, left.at) if text else written,
    )
