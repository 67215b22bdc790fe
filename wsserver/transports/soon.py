"""What many connections want done at the end of a turn of the event loop.

A handle of the loop for each of them would cost a third of what they then do.
"""

import asyncio
from collections.abc import Callable


class Soon:
    """Calls back whoever asks, all under one handle of the loop."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def call(self, callback: Callable[[], None]) -> None:
        """Calls back once, after what the loop is doing now; it raises nothing."""
        if not self._callbacks:
            asyncio.get_running_loop().call_soon(self._run)
        self._callbacks.append(callback)

    def _run(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
