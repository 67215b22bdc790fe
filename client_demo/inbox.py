"""Events of a turn that were not read yet: bounded by the text, not by its pieces.

The client's reader never waits for the application. Where the application falls
behind, text that waits is joined into fewer events that say the same.
"""

from collections import deque

import anyio

from protocol.events import LogEvent
from protocol.merge import merge


class Inbox:
    """A queue; what is put in comes out once and in order, whoever reads."""

    def __init__(self, *, most: int = 256) -> None:
        """Starts empty.

        Args:
            most: How many events may wait before their text is joined.
        """
        self._events: deque[LogEvent] = deque()
        self._most = most
        self._join_at = most
        self._ended = False
        self._error: Exception | None = None
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: LogEvent) -> None:
        """Adds an event; never waits."""
        self._events.append(event)
        if len(self._events) > self._join_at:
            self._events = deque(merge(self._events))
            # Joining again only after as many more keeps the cost linear.
            self._join_at = len(self._events) + self._most
        self._changed.set()

    def clear(self) -> None:
        """Drops what was not read."""
        self._events.clear()

    def end(self, error: Exception | None = None) -> None:
        """Says that nothing follows, or what the reader gets after the rest."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._changed.set()

    async def next(self) -> LogEvent | None:
        """Takes the next event, waiting for it; None after the last.

        Raises:
            Exception: What `end` was given.
        """
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        return self._events.popleft()
