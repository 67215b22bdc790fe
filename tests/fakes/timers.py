"""The event loop's timers, whichever loop runs the test."""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup


class TaskTimers:
    """Calls back from tasks that sleep; implements `Timers`."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks

    def time(self) -> float:
        """Returns the loop's time."""
        return anyio.current_time()

    def call_at(
        self, when: float, callback: Callable[[], None], /
    ) -> anyio.CancelScope:
        """Calls back at that time, unless what it returns is cancelled."""
        scope = anyio.CancelScope()
        self._tasks.start_soon(self._call_at, when, callback, scope)
        return scope

    async def _call_at(
        self, when: float, callback: Callable[[], None], scope: anyio.CancelScope
    ) -> None:
        with scope:
            with anyio.CancelScope(deadline=when):  # `sleep_until` ends a little early
                await anyio.sleep_forever()
            callback()
