"""Reads and moves of text at moments that are hard to hit."""

import asyncio
import sqlite3
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
import structlog.testing

from tests.stores.samples import ALL, KEY, NOW, appending, meta, tokens
from tests.stores.sqlite_rig import begin, moved, opened, stream
from wsserver.log.entry import compact, text_entry
from wsserver.log.store import Write
from wsserver.stores.sqlite import journal, text_files

pytestmark = pytest.mark.usefixtures("each_space")


async def test_text_is_stored_at_once_again_after_both_files_were_full(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 400)
    monkeypatch.setattr(text_files, "FILE_BYTES", 2_000)
    go = Event()

    def hold(*_: Any) -> int:  # a slow disk; the move succeeds
        assert go.wait(5)
        return sqlite3.SQLITE_OK

    async with opened(path) as store:
        await begin(store)
        store._writing.set_authorizer(hold)
        head = 1
        while store.put_text(KEY, tokens(head + 1, head + 1)[0]):
            head += 1
        go.set()
        await moved(store)
        store._writing.set_authorizer(None)
        for _ in range(20):
            head += 1
            if store.put_text(KEY, tokens(head, head)[0]):
                return
            await store.commit([appending(tokens(head, head))], NOW)
            await moved(store)
        pytest.fail("the file that is written is full, and nothing ever empties it")


async def test_a_disk_that_is_full_is_not_told_of_with_each_token(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 400)
    monkeypatch.setattr(text_files, "FILE_BYTES", 8_000)

    def refuse(action: int, table: str | None, *_: Any) -> int:
        refused = action == sqlite3.SQLITE_INSERT and table == "batch"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    async with opened(path) as store:
        await begin(store)
        store._writing.set_authorizer(refuse)
        head = 1
        with structlog.testing.capture_logs() as logged:
            while store.put_text(KEY, tokens(head + 1, head + 1)[0]):
                head += 1
                await moved(store)
        store._writing.set_authorizer(None)
    assert [line["event"] for line in logged] == ["store_text_not_moved"]
    assert head > 100, "until both files were full"


async def test_a_read_from_the_middle_of_an_entry_in_the_journal_has_it(
    path: Path,
) -> None:
    async with opened(path) as store:
        await begin(store)
        (entry,) = compact(tokens(2, 5))
        assert store.put_text(KEY, entry)
        assert await store.read(KEY, 3, ALL) == [entry]


@pytest.mark.parametrize("again", [True, False])
async def test_no_read_mixes_what_was_deleted_with_what_came_after(
    path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    done, go, real = Event(), Event(), journal.write_rows

    def held(*args: Any) -> int:
        pages = real(*args)
        done.set()
        assert go.wait(5)
        return pages

    writes = [Write(key=KEY, delete=True)]
    if again:
        new = [text_entry("delta", seq, 1, "new") for seq in (1, 2)]
        writes.append(Write(key=KEY, meta=meta(2, epoch="e2"), entries=new))
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 10)
        monkeypatch.setattr(journal, "write_rows", held)
        drop = asyncio.ensure_future(store.commit(writes, NOW))
        await anyio.to_thread.run_sync(done.wait, 5)
        try:
            found, entries = await store.meta(KEY), await store.read(KEY, 1, ALL)
        finally:
            go.set()
            await drop
    if again:
        assert found == meta(2, epoch="e2")
        assert [entry.text() for entry in entries] == ["new"]
    else:
        assert found is None
        assert entries == []
