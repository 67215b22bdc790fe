"""Wakes what waits for a time and for nothing else."""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup


class Alarms:
    """The alarms of one connection; they end with it."""

    def __init__(self, tasks: TaskGroup) -> None:
        """Makes none yet; `tasks` are the connection's."""
        self._tasks = tasks

    def set(self, at: float, ring: Callable[[], None]) -> None:
        """Calls `ring` at a time of the event loop's clock."""
        self._tasks.start_soon(self._wait, at, ring)

    async def _wait(self, at: float, ring: Callable[[], None]) -> None:
        await anyio.sleep_until(at)
        ring()
