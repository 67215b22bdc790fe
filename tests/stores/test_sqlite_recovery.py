"""What a killed server leaves, to the next one and to whoever looks meanwhile."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
import structlog.testing

from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    at_rest,
    meta,
    tokens,
)
from tests.stores.sqlite_rig import begin, crash, open_file, opened, stream, texts
from wsserver.log.entry import Entry
from wsserver.log.store import StoreError, Write
from wsserver.stores.sqlite import text_files
from wsserver.stores.sqlite.archive import Archive, Kept
from wsserver.stores.sqlite.text_records import Record, label, record


async def test_a_killed_server_leaves_its_text_to_the_next(path: Path) -> None:
    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 5, KEY, OTHER)
    await store.commit([at_rest(tokens(6, 6))], NOW + 6)
    await crash(store)
    assert len(await texts(path)) == 8

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 6)
        assert await store.read(OTHER, 0, ALL) == tokens(1, 5)
        assert await store.meta(OTHER) == meta(5)
        assert await store.live() == [OTHER]
        assert not store.put_text(OTHER, tokens(6, 6)[0]), "whose turn is it?"
        await store.commit([appending(tokens(6, 6), OTHER)], NOW)
        stream(store, 7, 7, OTHER)
        assert await store.read(OTHER, 4, ALL) == tokens(5, 7)

    names = {file.name async for file in anyio.Path(path.parent).iterdir()}
    assert names == {"s.db", "s.db.lock"}, "closing moves all"
    async with opened(path) as store:
        assert await store.read(OTHER, 0, ALL) == tokens(1, 7)


async def test_text_of_what_was_deleted_does_not_come_back(path: Path) -> None:
    """Also when the process dies between the commit and the end of the files."""
    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 5, KEY, OTHER)
    files = [anyio.Path(f"{path}-text{n}") for n in (1, 2)]
    before = [await file.read_bytes() for file in files]
    again = Write(key=KEY, meta=meta(1, epoch="e2"), entries=tokens(1, 1))
    drop = [Write(key=key, delete=True) for key in (KEY, OTHER)]
    await store.commit([*drop, again], NOW)
    await crash(store)
    for file, content in zip(files, before, strict=True):
        await file.write_bytes(content)

    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 1)
        assert await store.meta(OTHER) is None


def damaged(number: int) -> Callable[[bytearray], None]:
    def damage(content: bytearray) -> None:
        content[content.index(b"t%d " % number)] ^= 1

    return damage


def never_written(content: bytearray) -> None:
    content[:] = bytes(len(content))


@pytest.mark.parametrize(
    ("lose", "head"), [(damaged(3), 2), (damaged(2), 1), (never_written, 1)]
)
async def test_text_that_was_lost_ends_the_epoch(
    path: Path, lose: Callable[[bytearray], None], head: int
) -> None:
    """Also where nothing that follows on the rows is left."""
    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 3, KEY, OTHER)
    store._journal.retire()
    stream(store, 4, 5, KEY, OTHER)
    await crash(store)
    file = anyio.Path(f"{path}-text1")
    content = bytearray(await file.read_bytes())
    lose(content)
    await file.write_bytes(content)

    with structlog.testing.capture_logs() as logged:
        async with opened(path) as store:
            kept = [await store.meta(key) for key in (KEY, OTHER)]
            found = [await store.read(key, 0, ALL) for key in (KEY, OTHER)]
    assert [line["event"] for line in logged] == ["store_lost_text"]
    assert found == [tokens(1, head)] * 2
    assert all(each and each.head == head and each.epoch != "e1" for each in kept)


async def test_others_see_what_is_not_in_rows(path: Path) -> None:
    def look() -> tuple[list[Kept], list[Entry]]:
        with closing(Archive(path)) as archive:
            found = archive.find(KEY)
            return list(archive.conversations()), list(archive.entries(found))

    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 5, KEY, OTHER)
    await store.commit([at_rest(tokens(6, 6), OTHER)], NOW + 6)
    while_serving = await anyio.to_thread.run_sync(look)
    await crash(store)
    assert await anyio.to_thread.run_sync(look) == while_serving

    (first, second), entries = while_serving
    assert entries == tokens(1, 5)
    size = sum(len(entry.body) for entry in entries)
    assert first == Kept(
        key=KEY, epoch="e1", oldest=1, head=5, bytes=size, live=True, written=NOW
    )
    assert (second.head, second.bytes, second.written) == (6, size + 3, NOW + 6)


async def test_others_see_no_gap_where_a_file_gets_full_while_they_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_file(path)
    await begin(store)
    stream(store, 2, 3)
    whole = text_files.records

    def slow(content: bytes) -> Iterator[tuple[Record, int]]:
        records = list(whole(content))
        if not store._journal.retired:  # between the reading of the one and the other
            stream(store, 4, 5)
            store._journal.retire()
            stream(store, 6, 7)
        yield from records

    def look() -> tuple[int, list[Entry]]:
        with closing(Archive(path)) as archive:
            found = archive.find(KEY)
            return found.head, list(archive.entries(found))

    monkeypatch.setattr(text_files, "records", slow)
    assert await anyio.to_thread.run_sync(look) == (3, tokens(1, 3))
    monkeypatch.undo()
    assert await anyio.to_thread.run_sync(look) == (7, tokens(1, 7))
    await store.close()


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
async def test_what_is_in_the_way_of_text_is_named(
    path: Path, number: int, make: Callable[[Path], None]
) -> None:
    async with opened(path) as store:
        await begin(store)
    foreign = path.with_name(f"s.db-text{number}")
    make(foreign)
    with pytest.raises(StoreError, match=rf"s\.db-text{number}: .*Move it away\."):
        await open_file(path)

    def look() -> None:
        with closing(Archive(path)) as archive:
            archive.find(KEY)

    with pytest.raises(StoreError, match=rf"s\.db-text{number}: .*Move it away\."):
        await anyio.to_thread.run_sync(look)


@pytest.mark.parametrize(
    "content",
    [
        b"not ours",
        b"not ours" * 500_000,
        bytes(8) + b"not ours",
        bytes(text_files.FILE_BYTES + 1),
        record(label(KEY, "e1"), b"no entry"),
    ],
    ids=["short", "nearly as long", "zeros before", "longer", "no entry"],
)
async def test_a_file_of_somebody_else_is_named_and_stays(
    path: Path, content: bytes
) -> None:
    async with opened(path) as store:
        await begin(store)
    foreign = anyio.Path(f"{path}-text2")
    await foreign.write_bytes(content)
    with pytest.raises(
        StoreError, match=r"s\.db-text2: is not of this .*Move it away\."
    ):
        await open_file(path)
    assert await foreign.read_bytes() == content

    await foreign.rename(f"{path}-mine")
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 1)


_FIRST = record(label(KEY, "e1"), msgspec.msgpack.encode(tokens(2, 2)[0]))


@pytest.mark.parametrize(
    ("content", "size", "head"),
    [
        (b"", 0, 1),  # killed while it made the file ...
        (b"", 5_000, 1),  # ... and wrote zeros to it
        (b"", text_files.FILE_BYTES, 1),
        (_FIRST, text_files.FILE_BYTES, 2),
        (_FIRST, 5_000, 2),  # a version with other files
        # The copy was not finished; or the power failed, and only some of it got there.
        *[(_FIRST[:end], text_files.FILE_BYTES, 1) for end in (1, 8, 9, 30)],
        (bytes(20) + _FIRST[20:], text_files.FILE_BYTES, 1),
    ],
    ids=["made", "growing", "zeros", "one", "version", *"1234", "end"],
)
async def test_whatever_a_kill_leaves_is_taken_for_ours(
    path: Path, content: bytes, size: int, head: int
) -> None:
    """All of ours have one length from the moment that anything is written to them."""
    async with opened(path) as store:
        await begin(store)
    await anyio.Path(f"{path}-text1").write_bytes(content.ljust(size, b"\0"))
    async with opened(path) as store:
        left = await store.meta(KEY)
        assert left is not None
        assert (left.epoch, left.head) == ("e1", head)


async def test_a_damaged_record_gives_new_epochs_to_all_that_came_after(
    path: Path,
) -> None:
    store = await open_file(path)
    await begin(store, KEY, OTHER)
    stream(store, 2, 50, KEY, OTHER)
    await crash(store)
    file = anyio.Path(f"{path}-text1")
    content = bytearray(await file.read_bytes())
    content[1_000] ^= 1
    await file.write_bytes(content)
    async with opened(path) as store:
        for key in (KEY, OTHER):
            left = await store.meta(key)
            assert left is not None
            assert left.head < 50
            assert left.epoch != "e1"


async def test_a_server_that_closes_meanwhile_does_not_fail_who_reads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 5)
        await store._writer.call(store._move_text)
        real = Path.open

        def gone(self: Path, *args: Any, **kwargs: Any) -> Any:
            if self.name.endswith("-text1"):
                self.unlink(missing_ok=True)  # as a server does that closes
            return real(self, *args, **kwargs)

        def heads() -> list[int]:
            archive = Archive(path)
            monkeypatch.setattr(Path, "open", gone)
            try:
                return [kept.head for kept in archive.conversations()]
            finally:
                archive.close()

        assert await anyio.to_thread.run_sync(heads) == [5]


async def test_an_opening_that_fails_for_want_of_space_leaves_none_of_it_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        await begin(store)
    real = text_files._File.__init__

    def full(self: Any, file: Path) -> None:
        if file.name.endswith("2"):
            raise OSError(28, "No space left on device")
        real(self, file)

    files = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(text_files._File, "__init__", full)
        with pytest.raises(StoreError):
            await open_file(path)
    assert not await anyio.Path(f"{path}-text1").exists()
    assert len(os.listdir("/proc/self/fd")) == files
    async with opened(path, boot="boot-2") as store:
        assert not store.epochs_renewed, "nothing was written since it was closed"
