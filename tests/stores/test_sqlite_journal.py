"""The journal: text is in files first, in rows later, and read as one log throughout."""

import shutil
import sqlite3
from pathlib import Path
from threading import Event
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
from tests.stores.sqlite_rig import (
    begin,
    crash,
    moved,
    open_file,
    opened,
    query,
    stream,
    texts,
)
from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import StoreError, Write
from wsserver.stores.sqlite import journal, text_files

pytestmark = pytest.mark.usefixtures("each_space")


async def rows(path: Path) -> int:
    """Returns how many rows all conversations have together."""
    return (await query(path, "SELECT count(*) FROM batch"))[0][0]


async def test_text_of_running_turns_needs_no_transaction(path: Path) -> None:
    keys = [f"anna/{n}" for n in range(20)]
    async with opened(path) as store:
        assert not store.put_text(keys[0], tokens(1, 1)[0]), "nothing is known of it"
        await begin(store, *keys)

        statements = list[str]()
        store._writing.set_trace_callback(statements.append)
        stream(store, 2, 5, *keys)
        await moved(store)
        store._writing.set_trace_callback(None)

        assert not statements
        assert len(await texts(path)) == 80
        assert await rows(path) == 20
        for key in keys:
            assert await store.read(key, 0, ALL) == tokens(1, 5)
            assert await store.read(key, 3, ALL) == tokens(4, 5)
            assert await store.meta(key) == meta(5)


async def test_what_is_not_text_that_follows_waits_for_a_commit(path: Path) -> None:
    async with opened(path) as store:
        await begin(store)
        for entry in (*tokens(1, 1), *tokens(3, 3), done(2)):
            assert not store.put_text(KEY, entry)
        assert store.put_text(KEY, tokens(2, 2)[0])
        await store.commit([at_rest([done(3)])], NOW)
        assert not store.put_text(KEY, tokens(4, 4)[0]), "no turn runs"
        assert only(await store.read(KEY, 0, ALL), 0) == [*tokens(1, 2), done(3)]


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
        await begin(store, KEY, OTHER)
        stream(store, 2, 3, KEY, OTHER)
        await store.commit([write], NOW)
        assert await rows(path) == (3 if write.compacted else 4)
        assert only(await store.read(KEY, 0, ALL), 0)[:4] == tokens(1, 4)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 3)


@pytest.mark.parametrize("at_once", [1, 64])
async def test_a_full_file_is_moved_while_text_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 1_500)
    monkeypatch.setattr(journal, "MOVED_AT_ONCE", at_once)
    most = 0
    async with opened(path) as store:
        await begin(store, KEY, OTHER)
        for seq in range(2, 200):
            stream(store, seq, seq, KEY, OTHER)
            if seq % 7 == 0:
                await moved(store)
            most = max(most, len(await texts(path)))
        await moved(store)

        assert 30 < most < 120
        assert 6 < await rows(path) < 60
        for key in (KEY, OTHER):
            assert await store.read(key, 0, ALL) == tokens(1, 199)
        point = await store.trim_point(KEY, NOW + 500, 0)
    assert point == 0, "the running turn never goes"
    assert await rows(path) < 63


async def test_text_that_comes_while_it_is_moved_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 400)
    written = Event()

    def hold(*_: Any) -> int:
        assert written.wait(5)
        return sqlite3.SQLITE_OK

    store = await open_file(path)
    await begin(store)
    store._writing.set_authorizer(hold)
    stream(store, 2, 40)
    seen = await store.read(KEY, 0, ALL)
    written.set()
    await moved(store)
    store._writing.set_authorizer(None)
    assert seen == await store.read(KEY, 0, ALL) == tokens(1, 40)
    await crash(store)
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 40)


@pytest.mark.parametrize("drop", [True, False])
async def test_a_file_that_is_retired_during_a_move_is_not_cleared_by_it(
    path: Path, drop: bool
) -> None:
    begun, written = Event(), Event()

    def hold(*_: Any) -> int:
        begun.set()
        assert written.wait(5)
        return sqlite3.SQLITE_OK

    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 3)
    store._writing.set_authorizer(hold)
    if drop:
        gone = [Write(key=OTHER, delete=True)]
        store._writer.post(store._commit, gone, NOW)
    else:
        store._writer.post(store._move_full)
    await anyio.to_thread.run_sync(begun.wait, 5)
    stream(store, 4, 5)
    store._journal.retire()
    written.set()
    await moved(store)
    store._writing.set_authorizer(None)
    await crash(store)

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 5)


async def test_text_that_can_not_be_moved_waits_for_commits_in_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 400)
    monkeypatch.setattr(text_files, "FILE_BYTES", 2_000)

    def refuse(action: int, table: str | None, *_: Any) -> int:
        refused = action == sqlite3.SQLITE_INSERT and table == "batch"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    async with opened(path) as store:
        await begin(store)
        store._writing.set_authorizer(refuse)
        head, drop = 1, Write(key=OTHER, delete=True)  # which has to move all text
        with structlog.testing.capture_logs() as logged:
            while store.put_text(KEY, tokens(head + 1, head + 1)[0]):
                head += 1
                await moved(store)
            for write in (appending(tokens(head + 1, head + 1)), drop):
                with pytest.raises(StoreError, match="not authorized"):
                    await store.commit([write], NOW)
        assert {line["event"] for line in logged} == {"store_text_not_moved"}
        assert 30 < head < 100
        assert await store.read(KEY, 0, ALL) == tokens(1, head)
        assert await store.meta(KEY) == meta(head)

        store._writing.set_authorizer(None)
        await store.commit([appending(tokens(head + 1, head + 1))], NOW)
        await store.commit([drop], NOW)
        stream(store, head + 2, 100)
        assert await store.read(KEY, 0, ALL) == tokens(1, 100)


async def test_a_full_disk_leaves_the_text_readable(path: Path) -> None:
    big = text_entry("delta", 4, 1, "x" * 1_000_000)
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 3)
        await store._writer.call(store._writing.execute, "PRAGMA max_page_count = 60")
        longer = text_entry("delta", 4, 1, "x" * text_files.FILE_BYTES)
        assert not store.put_text(KEY, longer)
        for _ in range(2):
            with pytest.raises(StoreError, match="Free some space"):
                await store.commit([appending([big])], NOW)
            assert await store.read(KEY, 0, ALL) == tokens(1, 3)
            assert await store.meta(KEY) == meta(3)
        stream(store, 4, 5)
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
        await begin(store, KEY, OTHER)
        stream(store, 2, 4, KEY, OTHER)
        with pytest.raises(StoreError, match=KEY):
            await store.commit([appending(tokens(5, 5), OTHER), wrong], NOW)

        assert await store.read(KEY, 0, ALL) == tokens(1, 4)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 4)
        stream(store, 5, 6, KEY, OTHER)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 6)


async def test_commits_come_while_a_full_file_is_moved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 6_000)
    monkeypatch.setattr(journal, "MOVED_AT_ONCE", 1)
    keys = [f"anna/{n}" for n in range(30)]
    async with opened(path) as store:
        await begin(store, *keys)
        seq = 2
        while not store._moving:
            stream(store, seq, seq, *keys)
            seq += 1
        await store.commit([appending([done(seq)], keys[0])], NOW)
        await store.commit([Write(key=keys[1], delete=True)], NOW)
        assert not await texts(path), "what drops something moves all"
        await moved(store)
        stream(store, seq, seq, *keys[2:])
        for key in keys[2:]:
            assert await store.read(key, 0, ALL) == tokens(1, seq)


@pytest.mark.parametrize("moving", [True, False])
async def test_deleted_text_is_nowhere(
    path: Path, monkeypatch: pytest.MonkeyPatch, moving: bool
) -> None:
    if moving:
        monkeypatch.setattr(journal, "FULL_BYTES", 1_500)
        monkeypatch.setattr(journal, "MOVED_AT_ONCE", 1)
    private = "a rather private sentence"
    async with opened(path) as store:
        await begin(store, KEY, OTHER)
        for seq in range(2, 300):
            assert store.put_text(KEY, text_entry("delta", seq, 1, private))
            stream(store, seq, seq, OTHER)
        left = await texts(path)
        assert any(private in entry.text() for entry in left)

        again = appending(tokens(1, 2))
        await store.commit([Write(key=KEY, delete=True), again], NOW)
        await store._reader.call(int)
        await moved(store)

        async for file in anyio.Path(path.parent).iterdir():
            assert private.encode() not in await file.read_bytes(), file.name
        assert await store.read(OTHER, 0, ALL) == tokens(1, 299)
        assert await store.read(KEY, 0, ALL) == tokens(1, 2)
        stream(store, 3, 3)
        stream(store, 300, 300, OTHER)
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)


async def test_whatever_of_the_write_ahead_log_is_lost_commits_stay_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was moving the journal, or compacting what it held."""
    monkeypatch.setattr(journal, "FULL_BYTES", 2_000)
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


async def test_text_does_not_overtake_rows_that_a_read_had_no_room_for(
    path: Path,
) -> None:
    long = text_entry("delta", 2, 1, "x" * 1_000)
    async with opened(path) as store:
        await store.commit([appending([*tokens(1, 1), long])], NOW)
        stream(store, 3, 5)
        for max_bytes in (10, 100, 1_000, 1_002, 1_003, 1_010, ALL):
            read: list[Entry] = []
            while not read or read[-1].seq < 5:
                after = read[-1].seq if read else 0
                read += await store.read(KEY, after, max_bytes)
            assert read == [*tokens(1, 1), long, *tokens(3, 5)], max_bytes
