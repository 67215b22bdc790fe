"""Every store, on every event loop it is for."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from wsserver.log.store import Store
from wsserver.stores.memory import MemoryStore
from wsserver.stores.sqlite import text_files
from wsserver.stores.sqlite.store import SqliteStore

UVLOOP = ("asyncio", {"use_uvloop": True})


@pytest.fixture(
    params=[
        pytest.param(("memory", "asyncio"), id="memory-asyncio"),
        pytest.param(("memory", "trio"), id="memory-trio"),
        pytest.param(("sqlite", "asyncio"), id="sqlite-asyncio"),
        pytest.param(("sqlite", UVLOOP), id="sqlite-uvloop"),
    ]
)
def case(request: pytest.FixtureRequest) -> tuple[str, Any]:
    if request.param[1] is UVLOOP:
        pytest.importorskip("uvloop")
    return request.param


@pytest.fixture
async def store(case: tuple[str, Any], tmp_path: Path) -> AsyncIterator[Store]:
    if case[0] == "memory":
        store: Store = MemoryStore()
    else:
        store = await anyio.to_thread.run_sync(
            lambda: SqliteStore(tmp_path / "s.db", durability="process", boot="b")
        )
    yield store
    await store.close()


@pytest.fixture(params=[True, False], ids=["space kept", "not kept"])
def each_space(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of text are mapped into memory, or written."""
    monkeypatch.setattr(text_files, "keeps_space", lambda _: request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"
