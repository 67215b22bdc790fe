"""The embedded store: one SQLite file, one thread that writes, one that reads.

Text goes to a journal first, from the event loop itself: see
`wsserver.stores.sqlite.journal`.

Commits wait for no medium unless `durability` is `power`, and not for the moving of
the write-ahead log into the file either: the reading thread does most of that.
Runs under asyncio only (uvloop included).
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog
from msgspec import structs

from protocol.ids import MAX_SEQ
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, Receipt, StoreError, Write
from wsserver.stores import Durability
from wsserver.stores.sqlite.file import (
    SqliteFile,
    closed,
    explained,
    opened,
)
from wsserver.stores.sqlite.journal import Journal, drops
from wsserver.stores.sqlite.read import (
    decode,
    joined,
    read_entries,
    read_meta,
    snapshot,
)
from wsserver.stores.sqlite.recovery import recover
from wsserver.stores.sqlite.sql import statement
from wsserver.stores.sqlite.text_files import TextFiles, remove_text_files
from wsserver.stores.sqlite.worker import Worker

log = structlog.get_logger(__name__)

_RECEIPTS = statement("receipts")
_LIVE = statement("live")
_IDLE = statement("idle")
_COUNT = statement("count")
_TRIM_POINT = statement("trim_point")

_CHECKPOINT_PAGES = 4_000
"""How many pages go to the write-ahead log before they are moved to the file."""

_FEW = 8
"""A commit of so many conversations is waited for on the spot: 0.3 ms as a rule."""

_receipts = msgspec.msgpack.Decoder(list[Receipt])
_keys = msgspec.json.Decoder(list[str])


class SqliteStore:
    """Keeps logs in one file that this process alone has open.

    Attributes:
        durable: True: what was committed outlives the process.
        epochs_renewed: Whether opening found that a power failure may have taken
            commits back, and so gave each conversation a new epoch.
    """

    def __init__(self, path: Path, *, durability: Durability, boot: str | None) -> None:
        """Opens the file; blocks, so do it in a worker thread.

        Args:
            path: The file; it and its folder are created where missing.
            durability: What a commit outlives.
            boot: What names this boot of the machine, None if unknown.

        Raises:
            StoreError: It can't be opened; the message says what to do.
        """
        self.durable = True
        self._file = SqliteFile(path)
        self._closed = False
        self._pages = 0  # written since the last checkpoint
        self._checkpointing = False
        self._moving = False
        self._stuck = False  # a move has failed, so another waits for a commit
        self._now = 0.0  # of the newest commit
        with ExitStack() as opening:
            opening.callback(self._file.release)
            self._writing = opening.enter_context(
                closing(self._file.connect(durability))
            )
            self._reading = opening.enter_context(
                closing(self._file.connect(durability))
            )
            try:
                recover(self._writing, self._file.path)
                files = TextFiles(self._file.path, power=durability == "power")
                opening.callback(files.remove)
                self.epochs_renewed = opened(self._writing, durability, boot)
                self._journal = Journal(files)
            except (sqlite3.Error, OSError) as error:
                raise explained(error, self._file.path) from error
            opening.pop_all()
        # Deleted text is still in the write-ahead log, perhaps since a kill.
        self._wipe = not self._move(self._writing, "TRUNCATE")
        self._power = durability == "power"
        self._at_once = not self._power  # else text waits for the medium, in commits
        if self.epochs_renewed:
            log.warning("store_may_have_lost_commits", path=str(self._file.path))
        self._writer = Worker("store-writer")
        self._reader = Worker("store-reader")

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        """Writes all or nothing; as `Store.commit`."""
        self._check_open()
        if self._at_once and drops(writes):
            while self._journal.retired:
                await self._writer.call(self._move_text)
            self._journal.retire()
        short = self._at_once and len(writes) <= _FEW
        call = self._writer.call_shortly if short else self._writer.call
        await call(self._commit, writes, now)

    def put_text(self, key: str, entry: Entry) -> bool:
        """Stores text at once where that is possible; as `Store.put_text`."""
        if not self._at_once:
            return False
        stored = self._journal.put(key, entry)
        if self._journal.full:
            self._make_room()
        return stored

    async def meta(self, key: str) -> Meta | None:
        """Returns the conversation's meta; as `Store.meta`."""
        self._check_open()
        return await self._reader.call(self._meta, key)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        """Returns entries from `after + 1` on; as `Store.read`."""
        self._check_open()
        return await self._reader.call(self._read, key, after, max_bytes)

    async def receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        """Returns the newest receipts, oldest first; as `Store.receipts`."""
        self._check_open()
        return await self._reader.call(self._fetch_receipts, key, since, limit)

    async def live(self) -> list[str]:
        """Returns the keys whose meta says `live`; as `Store.live`."""
        return _keys.decode((await self._ask(_LIVE, {}))[0])

    async def trim_point(self, key: str, before: float, keep_bytes: int) -> int:
        """Returns the highest number that may go; as `Store.trim_point`."""
        _, text = self._journal.text(key)  # never the end of a turn
        values = {
            "key": key,
            "before": before,
            "keep_bytes": keep_bytes - sum([len(entry.body) for entry in text]),
            "journal": text[0].first if text else MAX_SEQ,
        }
        return (await self._ask(_TRIM_POINT, values))[0]

    async def idle(self, before: float, limit: int) -> list[str]:
        """Returns keys not written since `before`; as `Store.idle`."""
        row = await self._ask(_IDLE, {"before": before, "limit": limit})
        return _keys.decode(row[0])

    async def count(self, space: str) -> int:
        """Returns how many conversations a space has; as `Store.count`."""
        return (await self._ask(_COUNT, {"space": space}))[0]

    async def close(self) -> None:
        """Finishes what was begun, puts it on the medium and lets go of the file.

        Raises:
            StoreError: Some of it can't be put there.
        """
        if self._closed:
            return
        self._closed, self._at_once = True, False
        with anyio.CancelScope(shield=True):
            await self._writer.call(int)  # after all commits, whose checkpoint ...
            await self._reader.call(self._reading.close)  # ... the reader still does
            try:
                await self._writer.call(self._finish)
            finally:
                self._reader.stop()
                self._writer.stop()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self._file.path} was closed")

    async def _ask(self, sql: str, values: Mapping[str, Any]) -> Any:
        self._check_open()
        return await self._reader.call(self._fetch, sql, values)

    def _make_room(self) -> None:
        """Has text moved to rows, while more of it goes to the other file."""
        if not self._moving:
            self._moving = True
            if not self._journal.retired:
                self._journal.retire()
            self._writer.post(self._move_full)

    # In the writing thread

    def _commit(self, writes: Sequence[Write], now: float) -> None:
        try:
            self._file.check_space()
            if not self._power or not self._journal.put_all(writes):
                self._commit_rows(writes, now)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self._file.path) from error
        self._now = now
        if self._power and self._journal.full:
            self._make_room()
        self._wipe = self._wipe or any(write.delete for write in writes)
        if (self._wipe or self._pages > _CHECKPOINT_PAGES) and not self._checkpointing:
            self._checkpointing = True
            self._reader.post(self._checkpoint)

    def _commit_rows(self, writes: Sequence[Write], now: float) -> None:
        if self._power and drops(writes):
            if self._journal.retired:
                self._pages += self._journal.move_all(self._writing, now)
            self._journal.retire()
        self._pages += self._journal.commit(self._writing, writes, now)
        if self._stuck:  # there may be room again
            self._moving = self._stuck = False

    def _move_text(self) -> None:
        try:
            self._file.check_space()
            self._pages += self._journal.move_all(self._writing, self._now)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self._file.path) from error

    def _move_full(self) -> None:
        try:
            self._file.check_space()
            self._pages += self._journal.move(self._writing, self._now)
        except (sqlite3.Error, OSError, StoreError) as error:
            # The files still have it. Once they are full, text comes in commits.
            log.warning("store_text_not_moved", error=str(error))
            self._stuck = True
            return
        if self._journal.moving:
            self._writer.post(self._move_full)
        else:
            self._moving = False

    def _complete_checkpoint(self) -> None:
        """Moves what the reading thread left, so that the log begins anew."""
        self._pages = 0
        moved = self._move(self._writing, "TRUNCATE" if self._wipe else "PASSIVE")
        self._wipe = self._wipe and not moved
        self._checkpointing = False

    def _finish(self) -> None:
        try:
            self._file.check_space()
            self._journal.move_all(self._writing, self._now)
            closed(self._writing)
            remove_text_files(self._file.path)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self._file.path) from error
        finally:
            self._journal.close()
            self._writing.close()
            self._file.release()

    # In the reading thread

    def _fetch(self, sql: str, values: Mapping[str, Any]) -> Any:
        try:
            return self._reading.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise explained(error, self._file.path) from error

    def _meta(self, key: str) -> Meta | None:
        try:
            epoch, text = self._journal.text(key)
            meta = read_meta(self._reading, key)
        except sqlite3.Error as error:
            raise explained(error, self._file.path) from error
        if meta is None or meta.epoch != epoch or not text or text[-1].seq <= meta.head:
            return meta
        return structs.replace(meta, head=text[-1].seq)

    def _read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        try:
            epoch, text = self._journal.text(key)
            with snapshot(self._reading):
                meta = read_meta(self._reading, key)
                rows = read_entries(self._reading, key, after, max_bytes)
            if meta is None or meta.epoch != epoch:
                return rows
            return joined(rows, text, after, max_bytes)
        except sqlite3.Error as error:
            raise explained(error, self._file.path) from error

    def _fetch_receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        values = {"key": key, "since": since, "limit": limit}
        count, blob = self._fetch(_RECEIPTS, values)
        try:
            return decode(_receipts, count, blob) if count else []
        except sqlite3.Error as error:
            raise explained(error, self._file.path) from error

    def _checkpoint(self) -> None:
        """Moves the write-ahead log into the file, beside the commits."""
        self._move(self._reading, "PASSIVE")
        self._writer.post(self._complete_checkpoint)

    # In either

    def _move(self, connection: sqlite3.Connection, mode: str) -> bool:
        try:
            self._file.check_space()
            result = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        except (sqlite3.Error, OSError) as error:
            # The log still has the commits: later again.
            log.warning("store_checkpoint_failed", error=str(error))
            return False
        return not result[0]
