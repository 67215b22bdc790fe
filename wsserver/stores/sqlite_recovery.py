"""What a process that was killed left beside a SQLite store: text that is in no row."""

import secrets
import sqlite3
from pathlib import Path

import structlog
from msgspec import structs

from wsserver.log.store import Meta, Write
from wsserver.stores.rows import plan
from wsserver.stores.sqlite_commit import transaction, write_rows
from wsserver.stores.sqlite_file import set_synchronous
from wsserver.stores.sqlite_read import read_meta
from wsserver.stores.text_files import Left, read_text_files, remove_text_files

log = structlog.get_logger(__name__)


def recover(connection: sqlite3.Connection, path: Path) -> None:
    """Moves to rows what a process that was killed left in the files of a store.

    Rows are on the medium before the files are removed, as those may have been.

    Raises:
        OSError: The files can't be read or removed.
        sqlite3.Error: It can't be written.
    """
    left = read_text_files(path)
    changes = [
        (write, plan(write, left.at))
        for key, epoch in left.texts
        if (write := _recovered(left, key, epoch, read_meta(connection, key)))
    ]
    if changes:
        set_synchronous(connection, "power")
        with transaction(connection):
            write_rows(connection, (), changes, left.at)
    remove_text_files(path)


def _recovered(left: Left, key: str, epoch: str, meta: Meta | None) -> Write | None:
    if meta is None or meta.epoch != epoch:
        return None  # it was deleted since
    text = left.after(key, epoch, meta.head)
    head = text[-1].seq if text else meta.head
    if left.texts[key, epoch][-1].seq > head:  # a record before it was damaged
        log.warning("store_lost_text", key=key, after=head)
        epoch = secrets.token_hex(8)
    elif not text:
        return None
    return Write(
        key=key, meta=structs.replace(meta, epoch=epoch, head=head), entries=text
    )
