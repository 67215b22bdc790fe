"""The SQLite file: who may have it open, what it holds, whether it can be believed.

Knows nothing of conversations but that they have epochs. Everything here blocks.
"""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from wsserver.log.store import StoreError
from wsserver.stores import Durability
from wsserver.stores.sqlite.commit import prepare
from wsserver.stores.sqlite.disk_space import check_spare, keeps_space
from wsserver.stores.sqlite.sql import statement
from wsserver.stores.sqlite.text_files import text_paths

SCHEMA_VERSION = 3
_APPLICATION_ID = 0x77737372
_OLDEST_SQLITE = (3, 38, 0)  # the first with `->>`
_BUSY_SECONDS = 10.0  # only our own two connections can be in each other's way
_WAL_BYTES = 67_108_864  # what is left of the write-ahead log after a burst

_MOST_LINKS = 40  # as the system follows

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_SPACE = "Free some space; the next write will then work."
_ACCESS = "Make the file and its folder readable and writable."
_LOOK = "Look at the system's log for what is wrong with the disk."
_OTHER_PROGRAM = "Stop the other program that has the file open."

_REMEDIES = {
    sqlite3.SQLITE_FULL: _SPACE,
    sqlite3.SQLITE_READONLY: "Make the file and its folder writable.",
    sqlite3.SQLITE_CANTOPEN: _ACCESS,
    sqlite3.SQLITE_PERM: _ACCESS,
    sqlite3.SQLITE_NOTADB: "Move it away, or name another file.",
    sqlite3.SQLITE_CORRUPT: "Stop the server, then restore a backup, or salvage "
    "what can be read with `sqlite3 FILE .recover`.",
    sqlite3.SQLITE_IOERR: _LOOK,
    sqlite3.SQLITE_BUSY: _OTHER_PROGRAM,
    sqlite3.SQLITE_LOCKED: _OTHER_PROGRAM,
}
_REMEDIES_OF_SYSTEM = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EROFS: _ACCESS,
    errno.EEXIST: "Move it away.",
}


def boot_id() -> str | None:
    """Returns what names this boot of the machine; None where nothing does."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def explained(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Makes the error for a person: the file, what is wrong, what to do."""
    if isinstance(error, OSError):
        remedy = _REMEDIES_OF_SYSTEM.get(error.errno or 0, _LOOK)
        return StoreError(f"{error.filename or path}: {error.strerror}. {remedy}")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return StoreError(f"{path}: {error}. {_REMEDIES.get(code, '')}".rstrip())


def located(path: Path) -> Path:
    """Returns where a store is, whatever links lead to it.

    What stands beside it bears its name: the lock, SQLite's log and the files of text.

    Raises:
        StoreError: Text stands beside a link, where no server looks for it.
    """
    path = path.expanduser()
    real = Path(os.path.realpath(path))
    for link in _links(path):
        for lost, found in zip(text_paths(link), text_paths(real), strict=True):
            if lost.exists() and lost.parent.resolve() / lost.name != found:
                raise StoreError(
                    f"{lost}: text of {real} that was left beside a link to it. With"
                    f" no server running, move it to {found}, or away if that is there"
                )
    return real


def _links(path: Path) -> Iterator[Path]:
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            return
        yield path
        path = path.parent / path.readlink()


class SqliteFile:
    """A database file that this process alone has open.

    Making one creates what is missing (the folder for the user alone, the file
    too) and takes the lock; `connect`, then `opened`, then `closed`, `release`.

    Attributes:
        path: Where it is, see `located`.
    """

    def __init__(self, path: Path) -> None:
        """Takes the file.

        Raises:
            StoreError: It can't be created, or another server has it open.
        """
        self.path = located(path)
        self._is_store = False
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            wanted = ".".join(map(str, _OLDEST_SQLITE))
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old for the sqlite store, "
                f"which needs {wanted}; use `--store memory` or another Python"
            )
        try:
            # Not what a link leads to: that disk may not be there at the moment.
            path.expanduser().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = self._take_lock()
            try:
                self._make()
            except OSError:
                self.release()
                raise
            self._keeps_space = keeps_space(self._lock) and self._is_kept()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise explained(error, self.path) from error
            raise StoreError(
                f"{self.path}: {error.strerror}. Name a file that can be made and "
                "locked, with `--store sqlite:PATH`"
            ) from error

    def _make(self) -> None:
        """Makes the file where there is none."""
        if not self.path.exists():
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))

    def _is_kept(self) -> bool:
        """Returns whether the file, which may be mounted by itself, keeps its space.

        Only before SQLite opens it: closing it lets go of SQLite's own locks.
        """
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return keeps_space(file)
        finally:
            os.close(file)

    @property
    def _lock_path(self) -> Path:
        return Path(f"{self.path}.lock")

    def _take_lock(self) -> int:
        path = self._lock_path
        self._made_lock = not path.exists()
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
            os.close(lock)
            if not isinstance(error, BlockingIOError):
                if self._made_lock:
                    path.unlink()
                raise
            raise StoreError(
                f"{self.path} is in use by another server (process {owner}): stop "
                "it, or give this one a file of its own with `--store sqlite:PATH`"
            ) from None
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        except OSError:
            if self._made_lock:
                path.unlink()
            os.close(lock)
            raise
        return lock

    def check_space(self) -> None:
        """Returns if SQLite can write without an end of this process for lack of space.

        Raises:
            OSError: There is too little left.
        """
        if not self._keeps_space:
            check_spare(self._lock)
            check_spare(self.path)

    def release(self) -> None:
        """Lets others have the file; leaves nothing beside one that is no store."""
        if self._made_lock and not self._is_store:
            self._lock_path.unlink(missing_ok=True)
        os.close(self._lock)

    def connect(self, durability: Durability) -> sqlite3.Connection:
        """Opens a connection, for one thread at a time; creates the schema.

        Raises:
            StoreError: The file is damaged, not ours, or of another version; or the
                disk is full.
        """
        try:
            self.check_space()
            connection = sqlite3.connect(
                self.path,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(connection, durability)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self.path) from error
        return connection

    def _prepare(self, connection: sqlite3.Connection, durability: Durability) -> None:
        self._check_version(connection)
        self._is_store = True
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError(
                f"{self.path}: this file system can't hold the store (no shared "
                "memory for a write-ahead log); name a file on a local disk"
            )
        set_synchronous(connection, durability)
        for pragma in (
            "secure_delete = ON",  # what is deleted is overwritten
            "wal_autocheckpoint = 0",  # it would keep a commit waiting: see store.py
            f"journal_size_limit = {_WAL_BYTES}",
            f"fullfsync = {int(durability == 'power')}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        prepare(connection)

    def _check_version(self, connection: sqlite3.Connection) -> None:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if not tables and not application and not version:
            connection.executescript(statement("schema"))
        else:
            check_ours(connection, self.path)


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Returns if the file is a store, and of the version that is known here.

    Raises:
        StoreError: It is not.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION_ID:
        raise StoreError(
            f"{path} belongs to another program; name another file with "
            "`--store sqlite:PATH`"
        )
    if version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        raise StoreError(
            f"{path} was made by {'a newer' if newer else 'an older'} wsserver (schema"
            f" version {version}, this one has {SCHEMA_VERSION}); nothing was changed:"
            f" start that version{', or a newer one,' if newer else ''} again, restore"
            " a backup that this one made, or name another file with"
            " `--store sqlite:PATH`"
        )


def lock_owner(path: Path) -> int | None:
    """Returns the process that has the store open, None if none has; 0: unknown.

    A server that starts in the same instant may be refused for it.
    """
    try:
        lock = os.open(f"{located(path)}.lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 20, 0).strip()
        return int(owner) if owner.isdigit() else 0
    finally:
        os.close(lock)
    return None


def opened(
    connection: sqlite3.Connection, durability: Durability, boot: str | None
) -> bool:
    """Notes that the file is in use; returns whether it may have lost commits.

    Without a write to the medium for each commit, a power failure may take back
    what clients saw. So if the file was not closed in order, and the machine has
    been started since (or can't tell), each conversation gets a new epoch. A
    killed process in the same boot loses nothing.

    Raises:
        sqlite3.Error: It can't be noted.
    """
    last = connection.execute("SELECT boot, durability, closed FROM opening").fetchone()
    lost = (
        last is not None
        and not last[2]
        and last[1] == "process"
        and (boot is None or boot != last[0])
    )
    # On the medium before the first commit: else a power failure could bring back
    # the note that the file was closed in order.
    set_synchronous(connection, "power")
    connection.execute("BEGIN IMMEDIATE")
    if lost:
        connection.execute(statement("renew_epochs"))
    connection.execute(statement("opened"), {"boot": boot, "durability": durability})
    connection.execute("COMMIT")
    set_synchronous(connection, durability)
    return lost


def closed(connection: sqlite3.Connection) -> None:
    """Puts all commits on the medium and notes that none can be lost.

    Raises:
        sqlite3.Error: They can't be put there.
    """
    set_synchronous(connection, "power")
    connection.execute("UPDATE opening SET closed = 1")


def set_synchronous(connection: sqlite3.Connection, durability: Durability) -> None:
    """Lets commits from here on outlive what they should.

    Raises:
        sqlite3.Error: It can't be set.
    """
    level = "FULL" if durability == "power" else "NORMAL"
    connection.execute(f"PRAGMA synchronous = {level}")
