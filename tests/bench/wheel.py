"""One timer for any number of paced streams.

Streams that are due in the same two milliseconds share a slot, so a tick costs what
is due and not what is open.
"""

from typing import Generic, TypeVar

TICK_SECONDS = 0.002

T = TypeVar("T")


class Wheel(Generic[T]):
    """Who is due when; the times are the event loop's, in seconds."""

    def __init__(self) -> None:
        self._slots: dict[int, list[T]] = {}
        self._reached = 0

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, stream: T, at: float) -> None:
        """Remembers that `stream` is due at `at`, or at the next tick if later."""
        slot = max(int(at / TICK_SECONDS), self._reached + 1)
        self._slots.setdefault(slot, []).append(stream)

    def clear(self) -> list[T]:
        """Takes out all."""
        found = [stream for slot in self._slots.values() for stream in slot]
        self._slots.clear()
        return found

    def due(self, now: float) -> list[T]:
        """Takes out what is due by now."""
        upto = int(now / TICK_SECONDS)
        if not self._slots:
            self._reached = upto
            return []
        found: list[T] = []
        for slot in range(max(self._reached + 1, min(self._slots)), upto + 1):
            found += self._slots.pop(slot, ())
        self._reached = max(self._reached, upto)
        return found
