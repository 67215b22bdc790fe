"""One timer for all deadlines, of turns, of connections and of text that is gathered.

A task that sleeps takes kilobytes, an alarm a few words. Deadlines are put off all the
time and hardly ever reached; so an alarm that is put off stays where it is in the
queue, and is looked at again when its old time has come.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

LOOK_SECONDS = 60.0
"""An alarm is looked at so often at the least: one that was cancelled is then gone,
also when it was set to a time tomorrow."""

TICKS_PER_SECOND = 1000
"""Alarms ring at whole ticks. An event loop whose clock counts milliseconds takes a time
between two of them for the one before; woken there, one would ask again until it is over."""


class Timer(Protocol):
    """A call that is due, and may be taken back."""

    def cancel(self) -> None:
        """Takes the call back; harmless once it was made."""
        ...


class Timers(Protocol):
    """What alarms need of the event loop; those of asyncio have it."""

    def time(self) -> float:
        """Returns seconds on a clock that never goes back."""
        ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer:
        """Calls back once when it is that time."""
        ...


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
        """Lets it ring at that time of the event loop's clock and not before; `inf` is never."""
        if at < inf:
            at = _whole_ticks(at)
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
        if now < self._at < inf:
            self._looked_at = self._alarms.add(self._at, self)
        elif self._at <= now and self._callback is not None:
            self._at = inf
            self._callback()


class Alarms:
    """All alarms of a server.

    Attributes:
        now: Returns the time of the clock that alarms go by.
    """

    def __init__(self, timers: Timers) -> None:
        """Makes a queue without alarms; they ring in the context of who makes it."""
        self.now = timers.time
        self._call_at = timers.call_at
        self._ring_there = partial(copy_context().run, self._ring)
        self._queue: list[tuple[float, int, Alarm]] = []
        self._numbers = count()  # alarms themselves have no order
        self._timer: Timer | None = None
        self._rings_at = inf
        self._stopped = False

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, at: float, alarm: Alarm) -> float:
        """Looks at an alarm at that time, or earlier; returns when."""
        at = min(at, _whole_ticks(self.now() + LOOK_SECONDS))
        heappush(self._queue, (at, next(self._numbers), alarm))
        if at < self._rings_at:
            self._ring_at(at)
        return at

    def stop(self) -> None:
        """Rings no more, but for those whose time has come already."""
        self._stopped = True
        self._rings_at = -inf
        if self._timer is not None:
            self._timer.cancel()

    def _ring_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = self._call_at(at, self._ring_there), at

    def _ring(self) -> None:
        """Looks at all whose time has come; called by the event loop."""
        queue, now = self._queue, self.now()
        self._timer, self._rings_at = None, -inf  # who is set meanwhile finds its place
        due: list[tuple[float, int, Alarm]] = []
        while queue and queue[0][0] <= now:
            due.append(heappop(queue))
        for at, _, alarm in due:
            try:
                alarm.look(at, now)
            except BaseException:
                # The boundary of an alarm: the others ring, and the loop goes on.
                log.exception("alarm_defective")
        if self._stopped:
            return
        self._rings_at = inf
        if queue:
            self._ring_at(queue[0][0])


def _whole_ticks(at: float) -> float:
    """Returns the first whole tick that is not before `at`, whatever floats are lost."""
    ticks = ceil(at * TICKS_PER_SECOND)
    if ticks / TICKS_PER_SECOND < at:
        ticks += 1
    return ticks / TICKS_PER_SECOND
