"""What has to outlive the power: text waits for the medium, in the files of text."""

import asyncio
import os
from pathlib import Path
from threading import Event

import anyio
import pytest

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
from tests.stores.sqlite_rig import (
    begin,
    crash,
    moved,
    open_file,
    opened,
    query,
    texts,
)
from wsserver.log.entry import compact
from wsserver.log.store import StoreError, Write
from wsserver.stores.sqlite import journal
from wsserver.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.usefixtures("each_space")

THIRD = "anna/c-3"


@pytest.fixture
async def store(path: Path) -> SqliteStore:
    return await open_file(path, durability="power")


async def stream(store: SqliteStore, first: int, last: int) -> None:
    for entry in tokens(first, last):
        await store.commit([appending([entry], key) for key in (KEY, OTHER)], NOW)


async def rows(path: Path) -> int:
    return (await query(path, "SELECT count(*) FROM batch"))[0][0]


async def test_text_waits_for_the_medium_once_a_commit(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def note(file: int) -> None:
        synced.append(file)

    monkeypatch.setattr(os, "fdatasync", note)
    await begin(store, KEY, OTHER)
    assert not store.put_text(KEY, tokens(2, 2)[0])
    await stream(store, 2, 5)

    assert len(synced) == 4
    assert len(await texts(path)) == 8
    assert await rows(path) == 2
    assert await store.read(KEY, 0, ALL) == tokens(1, 5)
    assert await store.meta(OTHER) == meta(5)
    await crash(store)

    store = await open_file(path, durability="power")
    assert await store.read(OTHER, 0, ALL) == tokens(1, 5)
    assert await rows(path) == 4
    await store.close()


@pytest.mark.parametrize(
    "write",
    [
        appending([*tokens(4, 4), done(5)]),
        appending(tokens(4, 5), receipts=[receipt("r", NOW)]),
        appending(tokens(4, 5), compacted=compact(tokens(2, 5))),
        at_rest(tokens(4, 5)),
        Write(key=KEY, meta=meta(5, oldest=2), entries=tokens(4, 5)),
        Write(key=KEY, meta=meta(3)),
    ],
    ids=["end of turn", "receipt", "compaction", "state", "trimmed", "nothing"],
)
async def test_a_commit_of_more_than_text_is_one_transaction(
    store: SqliteStore, path: Path, write: Write
) -> None:
    await begin(store, KEY, OTHER)
    await stream(store, 2, 3)
    await store.commit([write, appending(tokens(4, 4), OTHER)], NOW)
    assert len(await texts(path)) == 4, "which stay there until it is full"
    assert await store.read(OTHER, 0, ALL) == tokens(1, 4)
    assert (await store.read(KEY, 0, ALL))[0] == tokens(1, 1)[0]
    await store.close()


async def test_files_that_are_full_are_moved(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FULL_BYTES", 1_000)
    await begin(store, KEY, OTHER)
    await stream(store, 2, 100)
    await moved(store)
    assert len(await texts(path)) < 50
    assert await rows(path) < 40
    for key in (KEY, OTHER):
        assert await store.read(key, 0, ALL) == tokens(1, 100)
    await store.close()
    names = {file.name async for file in anyio.Path(path.parent).iterdir()}
    assert names == {"s.db", "s.db.lock"}


@pytest.mark.parametrize("retired", [False, True])
async def test_what_is_deleted_while_a_full_file_is_still_to_be_moved_goes_too(
    store: SqliteStore, path: Path, retired: bool
) -> None:
    await begin(store, KEY, OTHER)
    await stream(store, 2, 5)
    if retired:
        await store._writer.call(store._journal.retire)
        await stream(store, 6, 7)
    head = 7 if retired else 5
    await store.commit([Write(key=OTHER, delete=True)], NOW)
    assert await store.read(KEY, 0, ALL) == tokens(1, head)
    assert await store.meta(OTHER) is None
    await crash(store)
    async with opened(path) as again:
        assert await again.read(KEY, 0, ALL) == tokens(1, head)
        assert await again.meta(OTHER) is None


async def test_a_medium_that_fails_has_nothing_of_the_commit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    await begin(store, KEY, OTHER)
    await stream(store, 2, 3)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(StoreError, match=r"s\.db: .*Input/output error"):
            await stream(store, 4, 4)
    assert await store.read(KEY, 0, ALL) == tokens(1, 3)
    await stream(store, 4, 6)
    assert await store.read(KEY, 0, ALL) == tokens(1, 6)
    await store.close()


async def test_a_cancelled_commit_takes_no_later_one_along(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, real = Event(), Event(), os.fdatasync

    def slow(file: int) -> None:
        begun.set()
        assert go.wait(5)
        real(file)

    store = await open_file(path, durability="power")
    await begin(store, KEY, OTHER, THIRD)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", slow)
        text = asyncio.ensure_future(store.commit([appending(tokens(2, 3))], NOW))
        await anyio.to_thread.run_sync(begun.wait, 5)
        text.cancel()
        with pytest.raises(asyncio.CancelledError):
            await text
        drop = asyncio.ensure_future(store.commit([Write(key=OTHER, delete=True)], NOW))
        await asyncio.sleep(0)
        go.set()
        await drop
    await store.commit([appending(tokens(2, 3), THIRD)], NOW)
    await crash(store)
    async with opened(path) as store:
        assert await store.meta(THIRD) == meta(3)


async def test_a_short_write_is_no_success(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    store = await open_file(path, durability="power")
    await begin(store)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda f, b, at: real(f, b[: len(b) // 2], at))
        with pytest.raises(StoreError, match="Free some space"):
            await store.commit([appending(tokens(2, 9))], NOW)
    assert await store.meta(KEY) == meta(1)
    await store.commit([appending(tokens(2, 9))], NOW)
    await crash(store)
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 9)
