"""Whether the store could be written where the settings put it."""

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter

import anyio

from wsserver.assembly.store_file import store_file
from wsserver.log.entry import text_entry
from wsserver.log.store import Meta, StoreError, Write
from wsserver.operations.checks.findings import Finding, fail, ok, taken_apart, warn
from wsserver.settings import Settings, SettingsError
from wsserver.stores import Durability

LEAST_FREE_BYTES = 1_000_000_000
SLOW_COMMIT_SECONDS = 0.1

_COMMITS = 20
_ANOTHER = "set another with sqlite:PATH"


def store(settings: Settings) -> Finding:
    """Looks at the store, and tries one of its kind beside it.

    The store itself is not changed. What is missing of the folder is not made.
    """
    try:
        path = store_file(settings)
    except SettingsError as error:
        return unusable(error)
    if path is None:
        return warn(
            "store",
            "memory: all conversations end with the server",
            "leave `store` out, or set sqlite:PATH",
        )
    try:
        return _look(path) or _try(path, settings.durability)
    except StoreError as error:
        return unusable(error)
    except OSError as error:
        from wsserver.stores.sqlite.file import explained

        return unusable(explained(error, path))


def check_file(path: Path) -> None:
    """Returns if a file is a store, and can be read, with the text that is beside it.

    Raises:
        StoreError: It is not.
    """
    from wsserver.stores.sqlite.archive import Archive

    with closing(Archive(path)) as archive:
        next(archive.conversations(), None)


def unusable(error: Exception) -> Finding:
    """Makes the finding of a store that can't be had."""
    says = str(error).removeprefix("store: ")
    return fail("store", *taken_apart(says, _ANOTHER))


def check_place(path: Path) -> Finding | None:
    """Returns a failure if this user could not write the store, or make it there.

    Raises:
        StoreError: It is no store, or there is no place for one.
    """
    folder = _nearest_folder(path)
    if not folder.is_dir():
        return fail("store", f"{path}: {folder} is no folder", _ANOTHER)
    if not os.access(folder, os.W_OK | os.X_OK):
        return fail(
            "store",
            f"{path}: this user may not write in {folder}",
            "run this as the server's user, or give that user the folder",
        )
    if path.exists():
        if path.stat().st_size:
            check_file(path)
        if not os.access(path, os.R_OK | os.W_OK):
            return fail(
                "store",
                f"{path}: this user may not write it",
                "run this as the server's user, or give that user the file",
            )
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        says = f"{path}: nothing can be made in {folder}: {error.strerror}"
        return fail("store", says, _ANOTHER)


def _look(path: Path) -> Finding | None:
    """Looks at what is there; None: nothing speaks against it so far.

    Raises:
        StoreError: It is no store, or there is no place for one.
    """
    from wsserver.stores.sqlite.file import lock_owner

    finding = check_place(path)
    if finding is not None:
        return finding
    folder = _nearest_folder(path)
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        return warn(
            "store",
            f"{path}: {free / 1e6:.0f} MB left on that disk",
            "make room, or set retention_days or retention_bytes",
        )
    owner = lock_owner(path)
    if owner is not None:
        return ok("store", f"{path}, in use by a server (process {owner or '?'})")
    return None


def _try(path: Path, durability: Durability) -> Finding:
    """Commits to a store that is made beside the real one, and removes it."""
    with tempfile.TemporaryDirectory(
        prefix=".wsserver-doctor-", dir=_nearest_folder(path)
    ) as folder:
        seconds = anyio.run(_commit_seconds, Path(folder) / "try.db", durability)
    state = "can be written" if path.exists() else "can be made"
    says = f"{path} {state}, {seconds * 1000:.1f} ms a commit"
    if seconds > SLOW_COMMIT_SECONDS:
        return warn(
            "store",
            f"{says}, for which every token waits",
            "put it on a local disk, or set durability = process",
        )
    return ok("store", says)


async def _commit_seconds(file: Path, durability: Durability) -> float:
    from wsserver.stores.sqlite.store import SqliteStore

    tried = SqliteStore(file, durability=durability, boot=None)
    try:
        began = perf_counter()
        for number in range(1, _COMMITS + 1):
            await tried.commit([_write(number)], float(number))
        return (perf_counter() - began) / _COMMITS
    finally:
        await tried.close()


def _write(number: int) -> Write:
    meta = Meta(epoch="try", head=number, oldest=1, live=False, state=b"")
    entry = text_entry("delta", number, 1, "a word or two ")
    return Write(key="doctor/try", meta=meta, entries=[entry])


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in path.parents if folder.exists())
