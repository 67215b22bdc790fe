"""Which store a setting names, and opening it."""

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread

from wsserver.log.store import Store
from wsserver.stores import Durability
from wsserver.stores.memory import MemoryStore


def default_path(environ: Mapping[str, str], home: Path) -> Path:
    """Returns where the store is kept unless told: the user's XDG state folder."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # so says the XDG specification
        state = home / ".local" / "state"
    return state / "wsserver" / "wsserver.db"


def parse_store(spec: str, default: Path) -> Path | None:
    """Returns the file that `memory`, `sqlite` or `sqlite:PATH` names.

    Args:
        spec: The setting.
        default: What `sqlite` alone names.

    Returns:
        None for `memory`.

    Raises:
        ValueError: It is none of these; the message fits in a line.
    """
    kind, colon, path = spec.partition(":")
    if kind == "memory" and not colon:
        return None
    if kind == "sqlite" and not colon:
        return default
    if kind == "sqlite" and path and path != ":memory:":
        return Path(path)
    raise ValueError(
        f"store is {spec!r}, but has to be `memory`, `sqlite` or `sqlite:PATH`"
    )


async def open_store(path: Path | None, *, durability: Durability) -> Store:
    """Opens a store; the caller closes it.

    Args:
        path: The file; None for a store in memory.
        durability: What a commit outlives: the end of the `process`, or a loss of
            `power` too.

    Raises:
        StoreError: The store can't be opened; the message says what to do.
    """
    if path is None:
        return MemoryStore()
    from wsserver.stores.sqlite.file import boot_id
    from wsserver.stores.sqlite.store import SqliteStore

    def opening() -> SqliteStore:
        return SqliteStore(path, durability=durability, boot=boot_id())

    return await anyio.to_thread.run_sync(opening)
