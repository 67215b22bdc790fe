import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from tests.stores.samples import NOW, appending, tokens
from wsserver.operations.checks import store as store_check
from wsserver.operations.checks.store import store
from wsserver.settings import Settings
from wsserver.stores.sqlite.store import SqliteStore


def settings(path: Path) -> Settings:
    return Settings(store=f"sqlite:{path}")


async def used(path: Path) -> None:
    store = SqliteStore(path, durability="process", boot="b")
    await store.commit([appending(tokens(1, 3))], NOW)
    await store.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_that_can_be_made_is_not_made(tmp_path: Path) -> None:
    finding = store(settings(tmp_path / "new" / "s.db"))

    assert finding.status == "ok"
    assert "s.db can be made" in finding.says
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_there_is_left_as_it_was(tmp_path: Path) -> None:
    anyio.run(used, tmp_path / "s.db")
    before = (tmp_path / "s.db").read_bytes()

    finding = store(settings(tmp_path / "s.db"))

    assert finding.status == "ok"
    assert "s.db can be written" in finding.says
    assert (tmp_path / "s.db").read_bytes() == before
    # What a reader may leave, and a server empties when it ends.
    left = {"s.db", "s.db.lock", "s.db-wal", "s.db-shm"}
    assert {path.name for path in tmp_path.iterdir()} <= left


def test_what_is_in_the_way_of_its_text_is_a_failure(tmp_path: Path) -> None:
    anyio.run(used, tmp_path / "s.db")
    (tmp_path / "s.db-text1").write_bytes(b"somebody's")

    finding = store(settings(tmp_path / "s.db"))

    assert (finding.status, finding.remedy) == ("fail", "Move it away")
    assert "s.db-text1: is not of this store" in finding.says


def test_a_disk_that_fails_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(shutil, "disk_usage", broken)
    finding = store(settings(tmp_path / "s.db"))
    assert finding.status == "fail"
    assert finding.says == f"{tmp_path}: Input/output error"
    assert finding.remedy == "Look at the system's log for what is wrong with the disk"


async def test_a_store_that_is_in_use_is_ok(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_store = await anyio.to_thread.run_sync(
        lambda: SqliteStore(path, durability="process", boot="b")
    )
    try:
        finding = await anyio.to_thread.run_sync(store, settings(path))
    finally:
        await open_store.close()

    assert finding.status == "ok"
    assert f"in use by a server (process {os.getpid()})" in finding.says


def test_a_store_in_memory_is_a_warning() -> None:
    finding = store(Settings(store="memory"))

    assert finding.status == "warn"
    assert "end with the server" in finding.says


def test_a_file_that_is_no_store_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"no database" * 1000)

    finding = store(settings(tmp_path / "s.db"))

    assert finding.status == "fail"
    assert "not a database" in finding.says
    assert finding.remedy


@pytest.mark.parametrize("mine", [False, True])
def test_what_this_user_may_not_write_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: bool
) -> None:
    """Root may write everywhere, so the answer of the system is made up."""
    path = tmp_path / "s.db"
    anyio.run(used, path)
    refused = path if mine else tmp_path
    access = os.access
    monkeypatch.setattr(
        store_check.os,
        "access",
        lambda asked, mode: asked != refused and access(asked, mode),
    )

    finding = store(settings(path))

    assert finding.status == "fail"
    assert finding.remedy is not None
    assert "server's user" in finding.remedy


def test_a_folder_that_is_a_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"")

    finding = store(settings(tmp_path / "s.db" / "x" / "y.db"))

    assert finding.status == "fail"


def test_a_disk_that_is_nearly_full_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5_000_000))

    finding = store(settings(tmp_path / "s.db"))

    assert finding.status == "warn"
    assert "5 MB left" in finding.says


def test_a_slow_disk_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_check, "SLOW_COMMIT_SECONDS", 0.0)

    finding = store(settings(tmp_path / "s.db"))

    assert finding.status == "warn"
    assert "ms a commit" in finding.says
