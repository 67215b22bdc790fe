"""SQLite files to try: opened, crashed, looked into from beside."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio.to_thread

from tests.stores.samples import KEY, NOW, appending, tokens
from wsserver.log.entry import Entry
from wsserver.stores import Durability
from wsserver.stores.sqlite.store import SqliteStore
from wsserver.stores.sqlite.text_files import read_text_files


async def open_file(
    path: Path, *, durability: Durability = "process", boot: str | None = "boot-1"
) -> SqliteStore:
    return await anyio.to_thread.run_sync(
        lambda: SqliteStore(path, durability=durability, boot=boot)
    )


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    store = await open_file(path, **options)
    try:
        yield store
    finally:
        await store.close()


async def crash(store: SqliteStore) -> None:
    """Lets go of the file as a killed process does: without a note of the end."""
    store._closed = True
    await store._reader.call(store._reading.close)
    await store._writer.call(store._writing.close)
    store._file.release()
    store._reader.stop()
    store._writer.stop()


async def query(path: Path, sql: str) -> list[Any]:
    """Asks the file, beside the store."""

    def ask() -> list[Any]:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(sql).fetchall()
            connection.commit()
            return rows

    return await anyio.to_thread.run_sync(ask)


async def texts(path: Path) -> list[Entry]:
    """Returns what is in the files of text."""
    left = await anyio.to_thread.run_sync(read_text_files, path)
    return [entry for text in left.texts.values() for entry in text]


async def begin(store: SqliteStore, *keys: str) -> None:
    """Commits the first token, and that a turn runs."""
    await store.commit([appending(tokens(1, 1), key) for key in keys or (KEY,)], NOW)


def stream(store: SqliteStore, first: int, last: int, *keys: str) -> None:
    """Stores one token of each conversation after another."""
    for entry in tokens(first, last):
        for key in keys or (KEY,):
            assert store.put_text(key, entry)


async def moved(store: SqliteStore) -> None:
    """Returns when what was posted to the writing thread is done."""
    await store._writer.call(int)
    while store._moving and not store._stuck:
        await store._writer.call(int)
