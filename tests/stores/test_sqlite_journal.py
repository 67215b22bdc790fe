"""The journal: text is in it first, in rows later, and read as one log throughout."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog.testing

from tests.stores import committing
from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    at_rest,
    done,
    meta,
    only,
    receipt,
    tokens,
)
from tests.stores.sqlite_rig import crash, open_file, opened, query
from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import StoreError, Write
from wsserver.stores import sqlite_journal
from wsserver.stores.sqlite import SqliteStore
from wsserver.stores.sqlite_archive import Archive, Kept


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


async def counts(path: Path) -> tuple[int, int]:
    """Returns how many rows the journal has, and all conversations together."""
    (row,) = await query(
        path, "SELECT (SELECT count(*) FROM journal), (SELECT count(*) FROM batch)"
    )
    return row


async def stream(store: SqliteStore, first: int, last: int, *keys: str) -> None:
    """Commits one token of each conversation after another."""
    for seq in range(first, last + 1):
        await store.commit(
            [appending(tokens(seq, seq), key) for key in keys or (KEY,)], NOW + seq
        )


async def test_text_of_many_conversations_is_one_row_a_commit(path: Path) -> None:
    keys = [f"anna/{n}" for n in range(20)]
    async with opened(path) as store:
        await stream(store, 1, 1, *keys)
        assert await counts(path) == (0, 20), "that a turn runs is more than text"

        statements = list[str]()
        store._writing.set_trace_callback(statements.append)
        await stream(store, 2, 5, *keys)
        store._writing.set_trace_callback(None)

        assert len(statements) == 4, "a commit of text is one statement"
        assert await counts(path) == (4, 20)
        for key in keys:
            assert await store.read(key, 0, ALL) == tokens(1, 5)
            assert await store.read(key, 3, ALL) == tokens(4, 5)
            assert await store.meta(key) == meta(5)


@pytest.mark.parametrize(
    "write",
    [
        appending([*tokens(4, 4), done(5)]),
        appending(tokens(4, 5), receipts=[receipt("r", NOW)]),
        appending(tokens(4, 5), compacted=compact(tokens(2, 5))),
        at_rest(tokens(4, 5)),
        Write(key=KEY, meta=meta(5, oldest=2), entries=tokens(4, 5)),
    ],
    ids=["end of turn", "receipt", "compaction", "state", "trimmed"],
)
async def test_more_than_text_moves_the_text_of_its_conversation(
    path: Path, write: Write
) -> None:
    async with opened(path) as store:
        await stream(store, 1, 1, KEY, OTHER)
        await stream(store, 2, 3, KEY, OTHER)
        await store.commit([write], NOW)
        journal, rows = await counts(path)
        assert (journal, rows) == (2, 3 if write.compacted else 4)
        assert only(await store.read(KEY, 0, ALL), 0)[:4] == tokens(1, 4)

        await store.commit([at_rest(tokens(4, 4), OTHER)], NOW)
        assert (await counts(path))[0] == 0, "nothing is left that needs it"
        assert await store.read(OTHER, 0, ALL) == tokens(1, 4)


async def test_a_full_journal_is_moved_behind_the_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_journal, "FULL_BYTES", 1_500)
    most = 0
    async with opened(path) as store:
        for seq in range(1, 200):
            await stream(store, seq, seq, KEY, OTHER)
            most = max(most, (await counts(path))[0])
        rows = (await counts(path))[1]

        assert 10 < most < 40
        assert 6 < rows < 30
        assert await store.read(KEY, 0, ALL) == tokens(1, 199)
        point = await store.trim_point(KEY, NOW + 500, 0)
    assert point == 0, "the running turn never goes"


async def test_text_that_can_not_be_moved_makes_commits_fail_in_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_journal, "FULL_BYTES", 400)

    def refuse(action: int, table: str | None, *_: Any) -> int:
        refused = action == sqlite3.SQLITE_INSERT and table == "batch"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    async with opened(path) as store:
        await stream(store, 1, 1)
        store._writing.set_authorizer(refuse)
        with structlog.testing.capture_logs() as logged:
            with pytest.raises(StoreError):
                await stream(store, 2, 100)
            kept = await store.meta(KEY)
            store._writing.set_authorizer(None)
        assert kept is not None
        assert {line["event"] for line in logged} == {"store_journal_not_moved"}
        assert 10 < kept.head < 60
        assert await store.read(KEY, 0, ALL) == tokens(1, kept.head)

        await stream(store, kept.head + 1, 100)

        assert await store.read(KEY, 0, ALL) == tokens(1, 100)


async def test_a_full_disk_leaves_what_is_in_the_journal_readable(path: Path) -> None:
    big = text_entry("delta", 4, 1, "x" * 1_000_000)
    async with opened(path) as store:
        await stream(store, 1, 3)
        await store._writer.call(store._writing.execute, "PRAGMA max_page_count = 60")
        for _ in range(2):
            with pytest.raises(StoreError, match="Free some space"):
                await store.commit([appending([big])], NOW)
            assert await store.read(KEY, 0, ALL) == tokens(1, 3)
            assert await store.meta(KEY) == meta(3)
        await stream(store, 4, 5)
        assert await store.read(KEY, 1, ALL) == tokens(2, 5)


@pytest.mark.parametrize("first", [3, 4, 6], ids=["again", "overlap", "hole"])
@pytest.mark.parametrize("entries", [True, False], ids=["text", "state"])
async def test_a_write_that_does_not_follow_on_the_journal_changes_nothing(
    path: Path, first: int, entries: bool
) -> None:
    wrong = Write(
        key=KEY,
        meta=meta(6 if entries else first - 1, live=entries),
        entries=tokens(first, 6) if entries else (),
    )
    async with opened(path) as store:
        await stream(store, 1, 4, KEY, OTHER)
        with pytest.raises(StoreError, match=KEY):
            await store.commit([appending(tokens(5, 5), OTHER), wrong], NOW)

        assert await store.read(KEY, 0, ALL) == tokens(1, 4)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 4)
        await stream(store, 5, 6, KEY, OTHER)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 6)


async def test_deleted_text_is_not_in_the_journal_either(path: Path) -> None:
    private = "a rather private sentence"
    async with opened(path) as store:
        await stream(store, 1, 1, KEY, OTHER)
        for seq in range(2, 300):
            entry = text_entry("delta", seq, 1, private)
            await store.commit(
                [appending([entry]), appending(tokens(seq, seq), OTHER)], NOW
            )
        await store._reader.call(store._move, store._reading, "PASSIVE")
        assert private.encode() in await anyio.Path(path).read_bytes()

        again = appending(tokens(1, 2))
        await store.commit([Write(key=KEY, delete=True), again], NOW)
        await store._reader.call(int)
        await store._writer.call(int)

        async for file in anyio.Path(path.parent).iterdir():
            assert private.encode() not in await file.read_bytes(), file.name
        assert await store.read(OTHER, 0, ALL) == tokens(1, 299)
        assert await store.read(KEY, 0, ALL) == tokens(1, 2)


async def test_a_killed_server_leaves_the_journal_to_the_next(path: Path) -> None:
    store = await open_file(path)
    await stream(store, 1, 5, KEY, OTHER)
    await store.commit([at_rest(tokens(6, 6))], NOW + 6)
    await crash(store)
    assert (await counts(path))[0] == 4

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 6)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 5)
        assert await store.meta(OTHER) == meta(5)
        assert await store.live() == [OTHER]
        await stream(store, 6, 7, OTHER)
        assert await store.read(OTHER, 4, ALL) == tokens(5, 7)

    assert (await counts(path))[0] == 0, "closing moves all"
    async with opened(path) as store:
        assert await store.read(OTHER, 0, ALL) == tokens(1, 7)


async def test_others_see_what_is_in_the_journal(path: Path) -> None:
    def look() -> tuple[list[Kept], list[Entry]]:
        with closing(Archive(path)) as archive:
            found = archive.find(KEY)
            return list(archive.conversations()), list(archive.entries(found))

    store = await open_file(path)
    await stream(store, 1, 5, KEY, OTHER)
    await store.commit([at_rest(tokens(6, 6), OTHER)], NOW + 6)
    while_serving = await anyio.to_thread.run_sync(look)
    await crash(store)
    assert await anyio.to_thread.run_sync(look) == while_serving

    (first, second), entries = while_serving
    assert entries == tokens(1, 5)
    size = sum(len(entry.body) for entry in entries)
    assert first == Kept(
        key=KEY, epoch="e1", oldest=1, head=5, bytes=size, live=True, written=NOW + 5
    )
    assert (second.head, second.bytes, second.written) == (6, size + 3, NOW + 6)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET texts = substr(texts, 2)",
        "UPDATE journal SET texts = CAST(x'91' || texts AS BLOB)",
        "DELETE FROM journal WHERE id = 1",
        "DELETE FROM conversation",
    ],
)
async def test_a_damaged_journal_is_not_taken_for_a_log(
    path: Path, damage: str
) -> None:
    store = await open_file(path)
    await stream(store, 1, 5)
    await crash(store)
    await query(path, damage)

    with pytest.raises(StoreError, match=r"s\.db: entries are damaged"):
        await open_file(path)


async def test_whatever_of_the_write_ahead_log_is_lost_commits_stay_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was moving the journal, or compacting what it held."""
    monkeypatch.setattr(sqlite_journal, "FULL_BYTES", 2_000)
    indexes = range(len(committing.KEYS))
    store = await open_file(path)
    for number in range(1, 61):
        writes = [committing.write(number, index) for index in indexes]
        await store.commit(writes, float(number))
    log = await anyio.Path(f"{path}-wal").read_bytes()
    torn = path.parent / "torn.db"

    async def left(size: int) -> int:
        """Returns after which commit the file is that has so much of the log."""
        await anyio.to_thread.run_sync(shutil.copy, path, torn)
        await anyio.Path(f"{torn}-wal").write_bytes(log[:size])
        async with opened(torn) as rest:
            heads = list[int]()
            for key in committing.KEYS:
                kept = await rest.meta(key)
                entries = only(await rest.read(key, 0, ALL), 0)
                assert [(e.seq, e.text()) for e in entries] == [
                    (seq, committing.text(seq))
                    for seq in range(1, (kept.head if kept else 0) + 1)
                ]
                heads.append(kept.head if kept else 0)
            return committing.number(heads)

    try:
        sizes = [*range(len(log) // 2, len(log), 3 * 4120 + 99), len(log)]
        numbers = [await left(size) for size in sizes]
    finally:
        await crash(store)
    assert numbers == sorted(numbers)
    assert numbers[-1] == 60
    assert len(set(numbers)) > 8
