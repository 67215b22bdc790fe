"""What only the SQLite store has to do: two threads, full disks, bounded files."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog.testing

from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    at_rest,
    done,
    meta,
    receipt,
    tokens,
)
from tests.stores.sqlite_rig import crash, open_file, opened, query
from wsserver.log.entry import compact, text_entry
from wsserver.log.store import MisfitError, StoreError, Write
from wsserver.stores.rows import ROW_BYTES
from wsserver.stores.sqlite import commit
from wsserver.stores.sqlite.store import SqliteStore


async def checkpoints(store: SqliteStore) -> None:
    """Waits for the checkpoint under way: the reader's part, then the writer's."""
    await store._reader.call(int)
    await store._writer.call(int)


async def test_what_was_committed_is_there_after_closing(path: Path) -> None:
    async with opened(path) as store:
        await store.commit([appending(tokens(1, 5), receipts=[receipt("r", NOW)])], NOW)

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 5)
        assert await store.meta(KEY) == meta(5)
        assert await store.receipts(KEY, 0, 10) == [receipt("r", NOW)]
        await store.commit([appending(tokens(6, 7))], NOW)
        assert await store.read(KEY, 4, ALL) == tokens(5, 7)


async def test_a_closed_store_says_so(path: Path) -> None:
    async with opened(path) as store:
        pass

    asks: list[Callable[[], Any]] = [
        lambda: store.commit([], NOW),
        lambda: store.meta(KEY),
        lambda: store.read(KEY, 0, ALL),
        lambda: store.receipts(KEY, 0, 1),
        lambda: store.live(),
    ]
    for ask in asks:
        with pytest.raises(StoreError, match="closed"):
            await ask()


async def test_closing_finishes_what_was_begun(path: Path) -> None:
    gate = threading.Event()
    async with opened(path) as store, anyio.create_task_group() as tasks:
        store._writer.post(lambda: gate.wait(5) and None)
        for key in (KEY, OTHER):
            writes = [appending(tokens(1, 3), key), Write(key="a/x", delete=True)]
            tasks.start_soon(store.commit, writes, NOW)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(store.close)
        await anyio.lowlevel.checkpoint()
        with structlog.testing.capture_logs() as logged:
            gate.set()
            await store._writer.call(int)

    assert logged == [], "the checkpoint that was due failed"
    async with opened(path) as store:
        assert await store.read(OTHER, 0, ALL) == tokens(1, 3)


async def test_reads_do_not_wait_for_a_commit(path: Path) -> None:
    gate = threading.Event()
    async with opened(path) as store, anyio.create_task_group() as tasks:
        await store.commit([appending(tokens(1, 3))], NOW)

        def slowly() -> None:
            store._writing.execute("BEGIN IMMEDIATE")
            store._writing.execute("UPDATE conversation SET head = 77")
            gate.wait(5)
            store._writing.execute("ROLLBACK")

        tasks.start_soon(store._writer.call, slowly)
        tasks.start_soon(store.commit, [appending(tokens(4, 4))], NOW)
        with anyio.fail_after(3):
            assert await store.read(KEY, 0, ALL) == tokens(1, 3)
            assert await store.meta(KEY) == meta(3)
        gate.set()


async def test_after_a_full_disk_the_next_commit_works(path: Path) -> None:
    big = text_entry("delta", 4, 1, "x" * 1_000_000)
    async with opened(path) as store:
        await store.commit([appending(tokens(1, 3))], NOW)

        def limit(pages: int) -> None:
            store._writing.execute(f"PRAGMA max_page_count = {pages}")

        await store._writer.call(limit, 60)
        for _ in range(3):
            with pytest.raises(StoreError, match=r"s\.db: .*full.* Free some space"):
                await store.commit(
                    [appending([big]), appending(tokens(1, 1), OTHER)], NOW
                )
            assert await store.read(KEY, 0, ALL) == tokens(1, 3)
            assert await store.meta(OTHER) is None
        await store.commit([appending(tokens(1, 2), OTHER)], NOW)
        await store._writer.call(limit, 100_000)
        await store.commit([appending([big])], NOW)

        assert await store.read(KEY, 3, ALL) == [big]


async def test_a_file_that_can_not_be_written_says_what_to_do(path: Path) -> None:
    async with opened(path) as store:
        await store._writer.call(store._writing.execute, "PRAGMA query_only = ON")
        with pytest.raises(StoreError, match=r"s\.db: .*readonly.* writable"):
            await store.commit([appending(tokens(1, 3))], NOW)
        await store._writer.call(store._writing.execute, "PRAGMA query_only = OFF")


async def test_reading_a_little_of_a_long_conversation_is_cheap(path: Path) -> None:
    async with opened(path) as store:
        for seq in range(1, 21):
            big = text_entry("delta", seq, 1, "x" * 100_000)
            await store.commit([at_rest([big])], NOW)
        store._reading.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 350_000)

        assert [e.seq for e in await store.read(KEY, 5, 210_000)] == [6, 7]
        with pytest.raises(StoreError, match="too big"):
            await store.read(KEY, 5, ALL)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE batch SET entries = substr(entries, 3) WHERE first = 4",
        "UPDATE batch SET first = 5 WHERE first = 4",
        "DELETE FROM batch WHERE first = 4",
    ],
)
async def test_damaged_entries_are_not_taken_for_a_log(path: Path, damage: str) -> None:
    async with opened(path) as store:
        for first in (1, 4, 7):
            await store.commit([at_rest(tokens(first, first + 2))], NOW)
        await query(path, damage)

        with pytest.raises(StoreError, match=r"s\.db: entries are damaged"):
            await store.read(KEY, 0, ALL)


async def test_the_rows_of_a_compacted_turn_are_of_bounded_size(path: Path) -> None:
    entries = [text_entry("delta", seq, 1, "x" * 50) for seq in range(1, 20_001)]
    entries.append(done(20_001))
    async with opened(path) as store:
        await store.commit([appending(entries)], NOW)
        await store.commit(
            [Write(key=KEY, meta=meta(20_001), compacted=compact(entries))], NOW
        )

        rows = await query(path, "SELECT length(entries) FROM batch")

    assert 4 <= len(rows) <= 9
    assert all(length <= ROW_BYTES for (length,) in rows)


async def test_deleted_text_is_in_no_file_any_more(path: Path) -> None:
    private = "a rather private sentence"
    entries = [text_entry("delta", seq, 1, private) for seq in range(1, 2001)]
    given = receipt(private, NOW)
    async with opened(path) as store:
        await store.commit([appending(entries, receipts=[given])], NOW)
        await store.commit(
            [Write(key=KEY, meta=meta(2000), compacted=compact(entries))], NOW
        )
        await store._reader.call(store._move, store._reading, "PASSIVE")
        assert private.encode() in await anyio.Path(path).read_bytes()

        await store.commit([Write(key=KEY, delete=True)], NOW)
        await checkpoints(store)

        async for file in anyio.Path(path.parent).iterdir():
            assert private.encode() not in await file.read_bytes(), file.name


async def test_what_a_killed_server_deleted_is_in_no_file_of_the_next(
    path: Path,
) -> None:
    private = "a rather private sentence"
    store = await open_file(path)
    entries = [text_entry("delta", seq, 1, private) for seq in range(1, 2001)]
    await store.commit([appending(entries)], NOW)
    store._checkpointing = True  # it is killed before it gets to that
    await store.commit([Write(key=KEY, delete=True)], NOW)
    left = path.parent / "left"
    await anyio.to_thread.run_sync(shutil.copytree, path.parent, left)
    await crash(store)
    assert private.encode() in await anyio.Path(f"{left}/s.db-wal").read_bytes()

    async with opened(left / path.name):
        async for file in anyio.Path(left).iterdir():
            assert private.encode() not in await file.read_bytes(), file.name


async def test_a_checkpoint_that_fails_is_logged_and_harms_no_commit(
    path: Path,
) -> None:
    async with opened(path) as store:
        store._reading.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
        with structlog.testing.capture_logs() as logged:
            await store.commit([Write(key=KEY, delete=True)], NOW)
            await checkpoints(store)
        store._reading.set_authorizer(None)

        assert [line["event"] for line in logged] == ["store_checkpoint_failed"]
        await store.commit([appending(tokens(1, 3))], NOW)
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)


async def test_closing_lets_go_of_the_file_even_if_it_can_not_be_written(
    path: Path,
) -> None:
    store = await open_file(path)
    await store.commit([appending(tokens(1, 3))], NOW)
    await store._writer.call(store._writing.execute, "PRAGMA query_only = ON")

    with pytest.raises(StoreError, match="readonly"):
        await store.close()

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)


async def test_one_checkpoint_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    async with opened(path) as store:
        modes = list[str]()

        def move(connection: sqlite3.Connection, mode: str) -> bool:
            modes.append(mode)
            return mode == "PASSIVE" or len(modes) > 2

        monkeypatch.setattr(store, "_move", move)
        store._reader.post(lambda: gate.wait(5) and None)
        for _ in range(5):
            await store.commit([Write(key=KEY, delete=True)], NOW)
        gate.set()
        await checkpoints(store)
        assert modes == ["PASSIVE", "TRUNCATE"]

        await store.commit([Write(key=KEY, meta=meta(0))], NOW)
        await checkpoints(store)
        assert modes[2:] == ["PASSIVE", "TRUNCATE"], "what failed is done again"

        await store.commit([Write(key=KEY, meta=meta(0))], NOW)
        await checkpoints(store)
        assert len(modes) == 4, "and then no more"


async def test_the_write_ahead_log_does_not_grow_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = list[str]()
    move = SqliteStore._move

    def counted(store: SqliteStore, connection: sqlite3.Connection, mode: str) -> bool:
        modes.append(mode)
        return move(store, connection, mode)

    big = [text_entry("delta", seq, 1, "x" * 120_000) for seq in range(1, 1001)]
    async with opened(path) as store:
        monkeypatch.setattr(SqliteStore, "_move", counted)
        for first in range(0, 600, 4):
            await store.commit([at_rest(big[first : first + 4])], NOW)
            await checkpoints(store)

        moved = await anyio.Path(path).stat()
        left = await anyio.Path(f"{path}-wal").stat()
    assert moved.st_size > 50_000_000
    assert left.st_size < 20_000_000
    assert modes == ["PASSIVE"] * 8, "72 MB in pieces of 16, each in two steps"


async def test_a_file_stops_growing_as_what_is_dropped_makes_room(path: Path) -> None:
    def turn(number: int, end: int) -> Write:
        text = text_entry("delta", 2 * number - 1, number, "x" * 20_000)
        return Write(
            key=KEY,
            meta=meta(2 * number, oldest=end + 1),
            entries=[text, done(2 * number, number)],
            trim_through=end,
        )

    async with opened(path) as store:
        pages = list[int]()
        for number in range(1, 61):
            await store.commit([turn(number, max(0, 2 * number - 20))], NOW)
            (found,) = await query(path, "PRAGMA page_count")
            pages.append(found[0])
    assert pages[9] > 50
    assert pages[59] <= pages[14]


@pytest.mark.parametrize("of_one", [True, False])
async def test_a_commit_may_be_longer_than_what_sqlite_takes_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, of_one: bool
) -> None:
    monkeypatch.setattr(commit, "MOST_BYTES", 500_000)
    entries = [
        text_entry("delta", seq, 1, f"{seq} " + "x" * 100_000) for seq in range(1, 21)
    ]
    long = [appending(entries, receipts=[receipt("r", NOW)])]
    if not of_one:
        long = [appending(entries[:1], f"anna/{n}") for n in range(20)]
    misfit = appending(tokens(5, 5), OTHER)
    async with opened(path) as store:
        await store.commit([appending(tokens(1, 1), OTHER)], NOW)
        store._writing.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        with pytest.raises(MisfitError) as refused:
            await store.commit([*long, misfit], NOW)
        assert refused.value.key == OTHER
        assert not store._writing.in_transaction
        assert await store.meta(long[0].key) is None

        await store.commit([*long, Write(key=OTHER, delete=True)], NOW)
        for write in long:
            assert await store.meta(write.key) == write.meta
            assert await store.read(write.key, 0, ALL) == write.entries
            assert await store.receipts(write.key, 0, 10) == list(write.receipts)
        assert await store.meta(OTHER) is None
