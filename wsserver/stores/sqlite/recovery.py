"""What a process that was killed left beside a SQLite store: text that is in no row.

Where some of it is damaged, nobody knows whose is missing: then each conversation in
which a turn ran has a new epoch.
"""

import sqlite3
from pathlib import Path

import structlog
from msgspec import structs

from wsserver.log.store import Meta, Write
from wsserver.stores.rows import plan
from wsserver.stores.sqlite.commit import transaction, write_rows
from wsserver.stores.sqlite.file import set_synchronous
from wsserver.stores.sqlite.read import read_meta
from wsserver.stores.sqlite.sql import statement
from wsserver.stores.sqlite.text_files import Left, read_text_files, remove_text_files

_RENEW_LIVE_EPOCHS = statement("renew_live_epochs")

log = structlog.get_logger(__name__)


def recover(connection: sqlite3.Connection, path: Path) -> None:
    """Moves to rows what a process that was killed left in the files of a store.

    Rows are on the medium before the files are removed, as those may have been.

    Raises:
        OSError: The files can't be read or removed.
        sqlite3.Error: It can't be written.
    """
    left = read_text_files(path)
    writes = [
        write
        for key, epoch in left.texts
        if (write := _recovered(left, key, epoch, read_meta(connection, key)))
    ]
    lost = left.damaged or any(_has_gap(left, write) for write in writes)
    changes = [(write, plan(write, left.at)) for write in writes if write.entries]
    if changes or lost:
        set_synchronous(connection, "power")
        with transaction(connection):
            write_rows(connection, (), changes, left.at)
            if lost:
                log.warning("store_lost_text", path=str(path))
                connection.execute(_RENEW_LIVE_EPOCHS)
    remove_text_files(path)


def _recovered(left: Left, key: str, epoch: str, meta: Meta | None) -> Write | None:
    if meta is None or meta.epoch != epoch:
        return None  # it was deleted since
    text = left.after(key, epoch, meta.head)
    head = text[-1].seq if text else meta.head
    return Write(key=key, meta=structs.replace(meta, head=head), entries=text)


def _has_gap(left: Left, write: Write) -> bool:
    meta = write.meta
    return meta is not None and left.texts[write.key, meta.epoch][-1].seq > meta.head
