"""What others than its server see of a SQLite file, and that the server does not mind."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    at_rest,
    compacting,
    done,
    meta,
    only,
    tokens,
)
from tests.stores.sqlite_rig import opened, query
from wsserver.log.entry import Entry, compact
from wsserver.log.store import StoreError, Write
from wsserver.stores.sqlite.archive import Archive, Kept
from wsserver.stores.sqlite.file import lock_owner
from wsserver.stores.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a ?#%20.db"  # what a URI would read otherwise


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with opened(path) as store:
        yield store


@pytest.fixture
def archive(path: Path, store: SqliteStore) -> Iterator[Archive]:
    """The same file, while the store has it open."""
    with closing(Archive(path)) as archive:
        yield archive


async def entries(archive: Archive, key: str = KEY) -> list[Entry]:
    return await anyio.to_thread.run_sync(
        lambda: list(archive.entries(archive.find(key)))
    )


async def test_what_was_committed_is_seen_at_once(
    store: SqliteStore, archive: Archive
) -> None:
    for last in (3, 6):
        await store.commit([appending(tokens(last - 2, last))], NOW)

        assert await entries(archive) == tokens(1, last)


async def test_each_conversation_is_listed_with_what_is_kept(
    store: SqliteStore, archive: Archive
) -> None:
    live = Write(key=OTHER, meta=meta(2, live=True), entries=tokens(1, 2))
    await store.commit([at_rest([*tokens(1, 3), done(4)])], NOW)
    await store.commit([live], NOW + 1)
    trimmed = Write(
        key=KEY,
        meta=meta(5, oldest=5, live=False),
        entries=tokens(5, 5),
        trim_through=4,
    )
    await store.commit([trimmed], NOW + 2)

    first, second = await anyio.to_thread.run_sync(
        lambda: list(archive.conversations())
    )

    size = len(b"t5 ")
    assert first == Kept(
        key=KEY, epoch="e1", oldest=5, head=5, bytes=size, live=False, written=NOW + 2
    )
    assert (second.key, second.live, second.written) == (OTHER, True, NOW + 1)


async def test_many_conversations_are_listed_and_a_space_has_its_own(
    store: SqliteStore, archive: Archive
) -> None:
    keys = sorted(
        [f"anna/{n}" for n in range(450)] + ["ann/1", "anna-b/1", "anna0/1", "b/anna"]
    )
    await store.commit([appending(tokens(1, 1), key) for key in keys], NOW)

    def listed(space: str | None) -> list[str]:
        return [kept.key for kept in archive.conversations(space)]

    assert await anyio.to_thread.run_sync(listed, None) == keys
    own = [key for key in keys if key.startswith("anna/")]
    assert await anyio.to_thread.run_sync(listed, "anna") == own
    assert await anyio.to_thread.run_sync(listed, "nobody") == []


async def test_a_conversation_is_found_by_its_key_or_its_id(
    store: SqliteStore, archive: Archive
) -> None:
    keys = ["a/one", "a/two", "b/two", "b/a/one"]
    await store.commit([appending(tokens(1, 1), key) for key in keys], NOW)

    def found(name: str) -> str:
        return archive.find(name).key

    assert await anyio.to_thread.run_sync(found, "one") == "a/one"
    assert await anyio.to_thread.run_sync(found, "b/two") == "b/two"
    assert await anyio.to_thread.run_sync(found, "a/one") == "a/one"
    with pytest.raises(StoreError, match=r"several spaces have two; .* a/two, b/two"):
        await anyio.to_thread.run_sync(found, "two")
    with pytest.raises(StoreError, match="has no conversation three"):
        await anyio.to_thread.run_sync(found, "three")


async def test_a_long_conversation_is_read_in_short_reads(
    store: SqliteStore, archive: Archive
) -> None:
    """While it is read, compacted, appended to and wiped after: nobody waits."""
    text = [entry for n in range(8) for entry in _long(1 + 20 * n, 20 + 20 * n)]
    for n in range(8):
        await store.commit([at_rest(text[20 * n : 20 * n + 20])], NOW)
    reading = await anyio.to_thread.run_sync(lambda: archive.entries(archive.find(KEY)))
    read = [await anyio.to_thread.run_sync(next, reading) for _ in range(3)]

    with anyio.fail_after(5):
        joined = compact(text[100:])
        await store.commit(
            [Write(key=KEY, meta=meta(161), entries=_long(161, 161), compacted=joined)],
            NOW,
        )
        await store.commit([appending(tokens(1, 1), OTHER)], NOW)
        await store.commit([Write(key=OTHER, delete=True)], NOW)
        # The log was emptied although somebody is in the middle of reading.
        while (
            await anyio.Path(f"{archive.path}-wal").stat()
            and (await anyio.Path(f"{archive.path}-wal").stat()).st_size
        ):
            await store.meta(KEY)
    read += await anyio.to_thread.run_sync(list, reading)

    assert only(read, 0) == only(text, 0), "up to the head that was found, no further"


async def test_nothing_beyond_the_head_that_was_found_is_read(
    store: SqliteStore, archive: Archive
) -> None:
    await store.commit([appending(tokens(1, 3))], NOW)
    kept = await anyio.to_thread.run_sync(archive.find, KEY)

    def read() -> list[Entry]:
        return list(archive.entries(kept))

    await store.commit([appending(tokens(4, 6))], NOW)
    assert await anyio.to_thread.run_sync(read) == tokens(1, 3)

    # Now one entry stands for numbers on both sides.
    await store.commit([compacting(tokens(1, 6), head=6)], NOW)
    assert only(await anyio.to_thread.run_sync(read), 0) == tokens(1, 3)


def _long(first: int, last: int) -> list[Entry]:
    return [
        Entry("delta", entry.first, entry.seq, 1, entry.body * 2000)
        for entry in tokens(first, last)
    ]


async def test_what_retention_dropped_meanwhile_is_not_passed_over(
    store: SqliteStore, archive: Archive
) -> None:
    await store.commit([appending(tokens(1, 5))], NOW)
    await store.commit([appending([done(6)])], NOW)
    await store.commit([appending(tokens(7, 9))], NOW)
    kept = await anyio.to_thread.run_sync(archive.find, KEY)
    trim = Write(key=KEY, meta=meta(9, oldest=7), trim_through=6)
    await store.commit([trim], NOW)

    with pytest.raises(StoreError, match="was shortened or deleted meanwhile"):
        await anyio.to_thread.run_sync(lambda: list(archive.entries(kept)))

    await store.commit([Write(key=KEY, delete=True)], NOW)
    with pytest.raises(StoreError, match="was shortened or deleted meanwhile"):
        await anyio.to_thread.run_sync(lambda: list(archive.entries(kept)))


async def test_a_conversation_without_entries_has_none(
    store: SqliteStore, archive: Archive
) -> None:
    await store.commit([Write(key=KEY, meta=meta(0))], NOW)

    assert await entries(archive) == []


async def test_damaged_entries_are_an_error(
    store: SqliteStore, archive: Archive, path: Path
) -> None:
    await store.commit([appending(tokens(1, 3))], NOW)
    await query(path, "UPDATE batch SET entries = x'00'")

    with pytest.raises(StoreError, match="entries are damaged"):
        await entries(archive)


async def test_nothing_can_be_written(archive: Archive) -> None:
    def write() -> None:
        archive._connection.execute("DELETE FROM conversation")

    with pytest.raises(Exception, match="readonly"):
        await anyio.to_thread.run_sync(write)


async def test_it_can_be_read_after_the_server_has_ended(path: Path) -> None:
    async with opened(path) as store:
        await store.commit([appending(tokens(1, 3))], NOW)
    with closing(await anyio.to_thread.run_sync(Archive, path)) as archive:
        assert await entries(archive) == tokens(1, 3)
        # And a server may start, go on and end meanwhile.
        async with opened(path) as store:
            await store.commit([appending(tokens(4, 5))], NOW)
        assert await entries(archive) == tokens(1, 5)
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 5)


def test_a_file_that_is_not_there_is_not_made(path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"there is no such file; .*--store sqlite:PATH"
    ):
        Archive(path)

    assert not path.exists()


async def test_the_database_of_another_program_is_an_error(path: Path) -> None:
    await query(path, "CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="belongs to another program"):
        await anyio.to_thread.run_sync(Archive, path)

    await anyio.Path(path).write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        await anyio.to_thread.run_sync(Archive, path)


async def test_who_has_the_file_open_can_be_asked(path: Path) -> None:
    assert await to_thread.run_sync(lock_owner, path) is None, "nobody ever had"
    async with opened(path):
        assert await to_thread.run_sync(lock_owner, path) == os.getpid()
    assert await to_thread.run_sync(lock_owner, path) is None
