"""One timer for all deadlines, of turns and of connections.

A task that sleeps takes kilobytes, an alarm a few words. Deadlines are put off all the
time and hardly ever reached; so an alarm that is put off stays where it is in the
queue, and is looked at again when its old time has come.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf

import anyio
import structlog

log = structlog.get_logger(__name__)

LOOK_SECONDS = 60.0
"""An alarm is looked at so often at the least: one that was cancelled is then gone,
also when it was set to a time tomorrow."""


class Alarm:
    """Calls back when its time has come, once for each time that it was set to."""

    __slots__ = ("_alarms", "_at", "_callback", "_looked_at")

    def __init__(self, alarms: "Alarms", callback: Callable[[], None]) -> None:
        """Makes an alarm that is not set.

        What `callback` raises is logged; whoever it belongs to has to see to it itself.
        """
        self._alarms = alarms
        self._callback: Callable[[], None] | None = callback
        self._at = inf
        self._looked_at = inf  # when the timer looks at it next

    def set(self, at: float) -> None:
        """Lets it ring at that time of anyio's clock and not before; `inf` is never."""
        self._at = at
        if at < self._looked_at:
            self._looked_at = self._alarms.add(at, self)

    def cancel(self) -> None:
        """Ends it: it never rings again, and holds nothing any more."""
        self._at, self._callback = inf, None

    def look(self, at: float, now: float) -> None:
        """Rings, or waits for its new time. Called by the timer."""
        if at != self._looked_at:
            return  # it was put forward, and has been looked at since
        self._looked_at = inf
        if self._at > now:
            self.set(self._at)
        elif self._callback is not None:
            self._at = inf
            self._callback()


class Alarms:
    """All alarms of a server; `run` has to run."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Alarm]] = []
        self._numbers = count()  # alarms themselves have no order
        self._sleeping_until = -inf
        self._earlier = anyio.Event()  # set when one is due before that

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, at: float, alarm: Alarm) -> float:
        """Looks at an alarm at that time, or earlier; returns when."""
        at = min(at, anyio.current_time() + LOOK_SECONDS)
        heappush(self._queue, (at, next(self._numbers), alarm))
        if at < self._sleeping_until:
            self._earlier.set()
        return at

    async def run(self) -> None:
        """Rings for ever."""
        queue = self._queue
        while True:
            self._earlier = anyio.Event()
            self._sleeping_until = queue[0][0] if queue else inf
            with anyio.CancelScope(deadline=self._sleeping_until):
                await self._earlier.wait()
            self._sleeping_until = -inf  # while it looks, nobody has to wake it
            now = anyio.current_time()
            while queue and queue[0][0] <= now:
                at, _, alarm = heappop(queue)
                try:
                    alarm.look(at, now)
                except Exception:
                    # The boundary of an alarm: the others ring nonetheless.
                    log.exception("alarm_defective")
