"""Looking into the sqlite store, and changing it while no server runs."""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from wsserver.assembly.store_file import store_file
from wsserver.log.store import StoreError
from wsserver.settings import Settings

if TYPE_CHECKING:
    from wsserver.stores.sqlite.archive import Archive, Kept


def store_path(settings: Settings) -> Path:
    """Returns the file that the settings name.

    Raises:
        SettingsError: No store can be there.
        StoreError: They name none, or this system can't have it.
    """
    path = store_file(settings)
    if path is None:
        raise StoreError(
            "the memory store ends with its server, so there is nothing to look into;"
            " name a file with `--store sqlite:PATH`"
        )
    if path.exists() and not path.stat().st_size:
        raise StoreError(
            f"{path} is empty, as no server has written to it yet; name the server's"
            " with `--store sqlite:PATH`"
        )
    return path


@contextmanager
def opened_archive(settings: Settings) -> Generator["Archive"]:
    """Opens the store for reading; a server may have it open too.

    Raises:
        StoreError: There is no such store.
    """
    path = store_path(settings)
    from wsserver.stores.sqlite.archive import Archive

    archive = Archive(path)
    try:
        yield archive
    finally:
        archive.close()


def frames(archive: "Archive", kept: "Kept") -> Iterator[bytes]:
    """Yields a conversation's events as they go over the wire, merged.

    Raises:
        StoreError: They can't be read.
    """
    conversation = orjson.dumps(kept.key.partition("/")[2])
    for entry in archive.entries(kept):
        yield entry.frame(conversation)


def check_not_served(settings: Settings, instead: str = "") -> None:
    """Returns if no server has the store open.

    Args:
        settings: Name the store.
        instead: What else can be done, as the end of a sentence.

    Raises:
        StoreError: One has; the message says what to do.
    """
    from wsserver.stores.sqlite.file import lock_owner

    path = store_path(settings)
    owner = lock_owner(path)
    if owner is not None:
        raise StoreError(
            f"{path} is in use by a server (process {owner or 'unknown'}): stop it"
            f" first{instead}"
        )


def delete(settings: Settings, keys: Sequence[str]) -> None:
    """Removes conversations: their events, their receipts, and every trace in the file.

    Args:
        settings: Name the store.
        keys: `SPACE/ID`; those that are not kept make no difference.

    Raises:
        StoreError: A server has the store open, or it can't be written.
    """
    from wsserver.stores.sqlite.commit import write_rows

    with _opened_alone(settings) as connection:
        write_rows(connection, keys, (), now=0)
        # Where SQLite moved a row to another page, the old one may still have it.
        connection.execute("VACUUM")


def renew_epochs(settings: Settings) -> int:
    """Gives each conversation a new epoch, so that no cursor of a client fits any more.

    For a file that was put in the place of a newer one: clients may hold numbers that
    it would give to something else.

    Returns:
        How many conversations there are.

    Raises:
        StoreError: There is no such store, a server has it open, or it can't be
            written.
    """
    from wsserver.stores.sqlite.sql import statement

    with _opened_alone(settings) as connection:
        return connection.execute(statement("renew_epochs")).rowcount


@contextmanager
def _opened_alone(settings: Settings) -> Generator[sqlite3.Connection]:
    """Opens a store that is there, as a server does; all that it has is in rows.

    Raises:
        StoreError: There is none, a server has it open, or it can't be written.
    """
    with opened_archive(settings):
        pass  # there is one, and it is ours
    check_not_served(settings)
    from wsserver.stores.sqlite.file import SqliteFile, explained
    from wsserver.stores.sqlite.recovery import recover

    file = SqliteFile(store_path(settings))
    try:
        with closing(file.connect("power")) as connection:
            recover(connection, file.path)
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise explained(error, file.path) from error
    finally:
        file.release()
