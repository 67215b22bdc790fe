"""An asyncio event loop whose clock jumps to the next timer.

Hours pass at once, and what runs runs in the same order every time. Nothing here
waits for a file or a socket.
"""

import asyncio
from collections.abc import Mapping
from selectors import BaseSelector, SelectorKey
from typing import Any

STEP_SECONDS = 1e-6
"""What one round of the loop takes: who asks again and again gets somewhere."""


class Deadlock(Exception):  # noqa: N818 - what happened, not whose fault it is
    """All tasks wait and no timer runs."""


class _Clock(BaseSelector):
    """A selector that never waits: it lets the time pass."""

    def __init__(self) -> None:
        self.now = 0.0
        self._keys: dict[Any, SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        key = SelectorKey(fileobj, 0, events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is None:
            raise Deadlock
        self.now += max(timeout, STEP_SECONDS)
        return []

    def get_map(self) -> Mapping[Any, SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now
