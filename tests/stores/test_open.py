"""Which store a setting names."""

import stat
from pathlib import Path

import pytest

from wsserver.log.store import StoreError
from wsserver.stores.memory import MemoryStore
from wsserver.stores.open import default_path, open_store, parse_store
from wsserver.stores.sqlite.store import SqliteStore

DEFAULT = Path("/state/wsserver/wsserver.db")


def test_settings_name_a_store() -> None:
    assert parse_store("memory", DEFAULT) is None
    assert parse_store("sqlite", DEFAULT) == DEFAULT
    assert parse_store("sqlite:/a/b.db", DEFAULT) == Path("/a/b.db")
    assert parse_store("sqlite:b:c.db", DEFAULT) == Path("b:c.db")


@pytest.mark.parametrize(
    "spec", ["", "redis", "sqlite:", "sqlite::memory:", "memory:", "SQLITE", "/a.db"]
)
def test_other_settings_are_refused_in_one_line(spec: str) -> None:
    with pytest.raises(ValueError, match="sqlite:PATH") as caught:
        parse_store(spec, DEFAULT)

    assert "\n" not in str(caught.value)


def test_the_default_is_in_the_users_state_folder() -> None:
    home = Path("/home/anna")

    assert default_path({"XDG_STATE_HOME": "/s"}, home) == Path(
        "/s/wsserver/wsserver.db"
    )
    usual = Path("/home/anna/.local/state/wsserver/wsserver.db")
    assert default_path({}, home) == usual
    assert default_path({"XDG_STATE_HOME": ""}, home) == usual
    assert default_path({"XDG_STATE_HOME": "relative"}, home) == usual


async def test_memory_is_opened() -> None:
    store = await open_store(None, durability="process")

    assert isinstance(store, MemoryStore)
    assert not store.durable


async def test_sqlite_is_opened_where_nothing_was_and_for_its_user_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "wsserver" / "wsserver.db"

    store = await open_store(path, durability="process")
    try:
        assert isinstance(store, SqliteStore)
        assert store.durable
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for name in ("wsserver.db", "wsserver.db-wal", "wsserver.db-shm"):
            assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600
    finally:
        await store.close()


async def test_a_folder_in_the_files_place_is_an_error_with_its_name(
    tmp_path: Path,
) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)):
        await open_store(tmp_path, durability="process")
