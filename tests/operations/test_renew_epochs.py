"""`wsserver conversations renew-epochs`: a restored backup is no log that clients know."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from tests.operations.conftest import Command
from tests.stores.samples import ALL, KEY, NOW, OTHER, appending, at_rest, tokens
from tests.stores.sqlite_rig import crash
from wsserver.stores.sqlite.store import SqliteStore


def opened(path: Path) -> SqliteStore:
    return SqliteStore(path, durability="process", boot="b")


def back_up(file: Path, copy: Path) -> None:
    """Does what the shell's `.backup` does."""
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as to:
        source.backup(to)


async def test_a_restored_backup_is_whole_and_has_new_epochs(
    wsserver: Command, tmp_path: Path
) -> None:
    file, backup = tmp_path / "wsserver.db", tmp_path / "backup.db"
    store = await run_sync(opened, file)
    await store.commit([appending(tokens(1, 3)), at_rest(tokens(1, 2), OTHER)], NOW)
    await run_sync(back_up, file, backup)
    await store.commit([appending(tokens(4, 6))], NOW)
    await store.close()

    ran = await run_sync(
        lambda: wsserver("conversations", "renew-epochs", "--store", f"sqlite:{backup}")
    )
    assert (ran.code, ran.out) == (0, "conversations with a new epoch: 2\n")

    store = await run_sync(opened, backup)
    assert await store.read(KEY, 0, ALL) == tokens(1, 3)
    metas = [await store.meta(key) for key in (KEY, OTHER)]
    await store.close()
    assert [meta.head for meta in metas if meta is not None] == [3, 2]
    epochs = {meta.epoch for meta in metas if meta is not None}
    assert len(epochs) == 2
    assert "e1" not in epochs


async def test_not_while_a_server_has_it(wsserver: Command, tmp_path: Path) -> None:
    file = tmp_path / "wsserver.db"
    store = await run_sync(opened, file)
    await store.commit([appending(tokens(1, 3))], NOW)
    arguments = ("conversations", "renew-epochs", "--store", f"sqlite:{file}")
    ran = await run_sync(lambda: wsserver(*arguments))
    assert ran.code == 1
    assert "is in use by a server (process " in ran.err
    assert ran.err.endswith("): stop it first\n")
    meta = await store.meta(KEY)
    assert meta is not None
    assert meta.epoch == "e1"
    await store.close()


def test_where_there_is_no_store_none_is_made(
    wsserver: Command, tmp_path: Path
) -> None:
    file = tmp_path / "none.db"
    ran = wsserver("conversations", "renew-epochs", "--store", f"sqlite:{file}")
    assert ran.code == 1
    assert str(file) in ran.err
    assert not file.exists()


@pytest.mark.parametrize("delete", [True, False])
async def test_text_that_a_kill_left_is_looked_at_first(
    wsserver: Command, tmp_path: Path, delete: bool
) -> None:
    file = tmp_path / "wsserver.db"
    store = await run_sync(opened, file)
    await store.commit([appending(tokens(1, 1))], NOW)
    assert store.put_text(KEY, tokens(2, 2)[0])
    await crash(store)

    command = ("delete", KEY, "--yes") if delete else ("renew-epochs",)
    ran = await run_sync(
        lambda: wsserver("conversations", *command, "--store", f"sqlite:{file}")
    )
    assert ran.code == 0, ran.err

    store = await run_sync(opened, file)
    assert await store.read(KEY, 0, ALL) == ([] if delete else tokens(1, 2))
    await store.close()
