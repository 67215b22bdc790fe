"""Who may have the SQLite file open, and whether what is in it can be believed."""

import errno
import fcntl
import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from tests.stores.samples import ALL, KEY, NOW, OTHER, appending, tokens
from tests.stores.sqlite_rig import begin, crash, open_file, opened, query, stream
from wsserver.log.entry import Entry
from wsserver.log.store import StoreError, Write
from wsserver.stores import Durability
from wsserver.stores.sqlite import file as sqlite_file
from wsserver.stores.sqlite.archive import Archive
from wsserver.stores.sqlite.file import SCHEMA_VERSION, boot_id
from wsserver.stores.sqlite.store import SqliteStore


async def contents(path: Path) -> dict[str, bytes]:
    """Returns what is in the file, and in those of text."""
    names = ("s.db", "s.db-text1", "s.db-text2")
    return {name: await anyio.Path(path.parent / name).read_bytes() for name in names}


def archived(path: Path) -> list[Entry]:
    """Returns the entries that are seen beside the server."""
    with closing(Archive(path)) as archive:
        return list(archive.entries(archive.find(KEY)))


async def test_a_second_server_is_refused(path: Path) -> None:
    async with opened(path) as store:
        with pytest.raises(StoreError, match=r"s\.db is in use .*--store") as caught:
            async with opened(path):
                pass
        await store.commit([appending(tokens(1, 1))], NOW)

    assert "\n" not in str(caught.value)
    async with opened(path):
        pass


async def test_a_second_server_is_refused_by_whatever_link_it_comes(path: Path) -> None:
    link, folder = path.with_name("link.db"), path.with_name("folder")
    link.symlink_to(path)
    folder.symlink_to(path.parent)
    for first, second in ((path, link), (link, path), (link, folder / path.name)):
        async with opened(first):
            with pytest.raises(StoreError, match="is in use"):
                async with opened(second):
                    pass
            owner = await anyio.to_thread.run_sync(sqlite_file.lock_owner, second)
            assert owner == os.getpid()


async def test_text_of_a_killed_server_is_found_by_another_link(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    for killed, again in ((link, path), (path, link)):
        store = await open_file(killed)
        await begin(store)
        stream(store, 2, 3)
        await crash(store)
        assert await anyio.to_thread.run_sync(archived, again) == tokens(1, 3)
        async with opened(again) as store:
            assert await store.read(KEY, 0, ALL) == tokens(1, 3)
            await store.commit([Write(key=KEY, delete=True)], NOW)


async def test_text_that_was_left_beside_a_link_is_named(path: Path) -> None:
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 3)
        await crash(store)
    link, chain = path.parent / "elsewhere" / "link.db", path.with_name("chain.db")
    await anyio.Path(link.parent).mkdir()
    link.symlink_to(path)
    chain.symlink_to(Path("elsewhere") / link.name)
    left, here = Path(f"{link}-text1"), Path(f"{path}-text1")
    here.rename(left)
    for given in (link, chain):
        for use in (open_file, partial(anyio.to_thread.run_sync, archived)):
            with pytest.raises(StoreError) as caught:
                await use(given)
            assert f"{left}: " in str(caught.value)
            assert f"move it to {here}," in str(caught.value)
    left.rename(here)
    async with opened(chain) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)


async def test_an_open_that_failed_holds_no_lock(path: Path) -> None:
    await anyio.Path(path).write_bytes(b"this is no database" * 1000)
    for _ in range(2):
        with pytest.raises(StoreError, match="not a database"):
            async with opened(path):
                pass

        beside = [one.name async for one in anyio.Path(path.parent).iterdir()]
        assert beside == [path.name], "a file of somebody else's stays alone"

    await anyio.Path(path).unlink()
    async with opened(path):
        pass


async def test_a_folder_that_can_not_be_made_is_an_error_with_its_name(
    path: Path,
) -> None:
    await anyio.Path(path).write_bytes(b"")

    with pytest.raises(StoreError, match=r"s\.db/x/y\.db: .*--store sqlite:PATH"):
        await open_file(path / "x" / "y.db")


async def test_a_file_system_without_locks_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(lock: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(StoreError, match=r"s\.db: No locks available"):
        await open_file(path)
    assert [one async for one in anyio.Path(path.parent).iterdir()] == []


async def test_a_file_system_without_shared_memory_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def in_memory(_: Path, **options: Any) -> sqlite3.Connection:
        return connect(":memory:", **options)  # knows no write-ahead log either

    monkeypatch.setattr(sqlite3, "connect", in_memory)

    with pytest.raises(StoreError, match=r"s\.db: .* on a local disk"):
        await open_file(path)


async def test_an_old_sqlite_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))

    with pytest.raises(StoreError, match=r"too old .* needs 3\.38\.0"):
        await open_file(path)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (
            SCHEMA_VERSION + 1,
            r"s\.db was made by a newer .*, or a newer one, .*--store",
        ),
        (
            SCHEMA_VERSION - 1,
            r"s\.db was made by an older .*that version again.*--store",
        ),
    ],
)
async def test_the_file_of_another_version_is_refused_and_left_as_it_is(
    path: Path, version: int, told: str
) -> None:
    store = await open_file(path)
    await begin(store)
    stream(store, 2, 3)
    await crash(store)
    await query(path, f"PRAGMA user_version = {version}")
    before = await contents(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=told):
            await open_file(path)
    assert await contents(path) == before

    await query(path, f"PRAGMA user_version = {SCHEMA_VERSION}")
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 3), "text was left alone too"


async def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    await query(path, "CREATE TABLE theirs (x)")

    with pytest.raises(StoreError, match="another program"):
        async with opened(path):
            pass

    assert await query(path, "SELECT name FROM sqlite_schema") == [("theirs",)]


@pytest.mark.parametrize("mark", ["application_id", "user_version"])
async def test_so_is_one_that_it_has_only_marked_as_its_own(
    path: Path, mark: str
) -> None:
    await query(path, f"PRAGMA {mark} = 7")

    with pytest.raises(StoreError, match="another program"):
        async with opened(path):
            pass

    assert await query(path, f"PRAGMA {mark}") == [(7,)]
    assert await query(path, "SELECT name FROM sqlite_schema") == []


async def test_a_damaged_file_says_what_to_do(path: Path) -> None:
    async with opened(path) as store:
        await store.commit([appending(tokens(1, 5000))], NOW)
    content = await anyio.Path(path).read_bytes()
    damaged = content[:4096] + b"\xa5" * (len(content) - 4096)
    await anyio.Path(path).write_bytes(damaged)

    with pytest.raises(StoreError, match=r"s\.db: .*malformed.* backup"):
        async with opened(path) as store:
            await store.read(KEY, 0, ALL)


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
async def test_durability_says_whether_commits_wait_for_the_medium(
    path: Path, durability: Durability, level: int
) -> None:
    async with opened(path, durability=durability) as store:
        for connection in (store._writing, store._reading):
            (got,) = connection.execute("PRAGMA synchronous").fetchone()
            assert got == level


async def epochs(path: Path, boot: str | None, **options: Any) -> list[str]:
    """Opens the file under a boot, and returns all epochs it has then."""
    async with opened(path, boot=boot, **options) as store:
        found = [await store.meta(key) for key in (KEY, OTHER)]
        assert store.epochs_renewed == all(m and m.epoch != "e1" for m in found)
        return [found.epoch for found in found if found]


async def used(path: Path, **options: Any) -> SqliteStore:
    """Makes a store with two conversations of epoch `e1`."""
    store = await open_file(path, **options)
    await store.commit([appending(tokens(1, 2)), appending(tokens(1, 2), OTHER)], NOW)
    return store


async def test_a_crash_before_the_machine_was_started_again_renews_epochs(
    path: Path,
) -> None:
    await crash(await used(path, boot="boot-1"))

    with capture_logs() as lines:
        renewed = await epochs(path, "boot-2")

    lost = {"event": "store_may_have_lost_commits", "path": str(path)}
    assert lines == [{**lost, "log_level": "warning"}]
    assert "e1" not in renewed
    assert len(set(renewed)) == 2
    async with opened(path, boot="boot-3") as store:
        assert not store.epochs_renewed
        found = await store.meta(KEY)
        assert found is not None
        assert found.epoch == renewed[0]
        assert await store.read(KEY, 0, ALL) == tokens(1, 2)


async def test_a_crash_in_the_same_boot_keeps_epochs(path: Path) -> None:
    await crash(await used(path, boot="boot-1"))

    assert await epochs(path, "boot-1") == ["e1", "e1"]


async def test_closing_in_order_keeps_epochs_whatever_the_boot(path: Path) -> None:
    await (await used(path, boot="boot-1")).close()

    assert await epochs(path, "boot-2") == ["e1", "e1"]
    assert await epochs(path, None) == ["e1", "e1"]


async def test_where_boots_have_no_names_a_crash_renews_epochs(path: Path) -> None:
    await crash(await used(path, boot=None))

    assert "e1" not in await epochs(path, None)


async def test_commits_that_waited_for_the_medium_keep_epochs(path: Path) -> None:
    await crash(await used(path, boot="boot-1", durability="power"))

    assert await epochs(path, "boot-2") == ["e1", "e1"]


async def test_a_second_crash_is_noticed_too(path: Path) -> None:
    await (await used(path, boot="boot-1")).close()
    await crash(await open_file(path, boot="boot-2"))

    assert "e1" not in await epochs(path, "boot-3")


def test_this_boot_has_a_lasting_name_where_linux_gives_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert boot_id() == boot_id()
    assert boot_id() != ""

    monkeypatch.setattr(sqlite_file, "_BOOT_ID", tmp_path / "nothing")
    assert boot_id() is None
