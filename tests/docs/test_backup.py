"""The commands of the deploy page that back a store up and restore it do what it says."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from anyio.to_thread import run_sync

from tests.stores.samples import ALL, KEY, NOW, OTHER, appending, at_rest, tokens
from wsserver.stores.sqlite import SqliteStore

PAGE = Path(__file__).parents[2] / "docs/how-to/deploy.md"


def sql(pattern: str) -> str:
    """Returns the argument of the one `sqlite3` command of the page that is like this."""
    found = re.findall(r'^sqlite3 \S+ "(.*)"$', PAGE.read_text(), re.MULTILINE)
    (one,) = [command for command in found if re.match(pattern, command)]
    return one


def opened(path: Path) -> SqliteStore:
    return SqliteStore(path, durability="process", boot="b")


def back_up(file: Path, copy: Path) -> None:
    """Does what the shell's `.backup` does."""
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as to:
        source.backup(to)


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


async def test_a_restored_backup_is_whole_and_no_log_that_clients_know(
    tmp_path: Path,
) -> None:
    file, backup = tmp_path / "wsserver.db", tmp_path / "backup.db"
    assert sql(r"\.backup ") == ".backup '/var/backups/wsserver.db'"
    store = await run_sync(opened, file)
    await store.commit([appending(tokens(1, 3)), at_rest(tokens(1, 2), OTHER)], NOW)
    await run_sync(back_up, file, backup)
    await store.commit([appending(tokens(4, 6))], NOW)
    await store.close()

    await run_sync(execute, backup, sql("UPDATE "))
    store = await run_sync(opened, backup)

    assert await store.read(KEY, 0, ALL) == tokens(1, 3)
    metas = [await store.meta(key) for key in (KEY, OTHER)]
    await store.close()
    assert [meta.head for meta in metas if meta is not None] == [3, 2]
    epochs = {meta.epoch for meta in metas if meta is not None}
    assert len(epochs) == 2
    assert "e1" not in epochs
