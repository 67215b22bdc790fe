"""The circuit breaker of one upstream: whether it is worth asking now.

Pure: the caller brings the time, in seconds of a monotonic clock, and says how each
call went. A call is admitted with a pass; what it says later counts only while the
breaker has not moved on since, so that calls that began before an outage can't
decide about what comes after it.

    closed    -> open       too many calls failed within the window
    open      -> half_open  the open time is over
    half_open -> closed     the one call that was admitted, the probe, succeeded
    half_open -> open       the probe failed
"""

from collections import deque
from typing import Literal

from msgspec import Struct

State = Literal["closed", "half_open", "open"]


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """When a breaker opens, and for how long.

    Attributes:
        failures: How many calls have to fail within the window.
        window_seconds: How long ago the first of them may be. At least half of all
            calls since that one have to have failed: a busy upstream that refuses
            one call in a hundred is no broken one.
        open_seconds: How long no call is admitted.
    """

    failures: int = 5
    window_seconds: float = 30.0
    open_seconds: float = 15.0


class Breaker:
    """The breaker of one upstream; begins closed."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._open_until: float | None = None  # None while closed
        self._probing = False
        self._pass = 0  # the pass that counts
        self._calls = 0  # that came to an end while closed
        # When the last ones failed, and how many calls had ended by then.
        self._failures: deque[tuple[float, int]] = deque(maxlen=policy.failures)

    def state(self, now: float) -> State:
        """Returns whether calls are admitted; `now` is in seconds on a monotonic clock."""
        if self._open_until is None:
            return "closed"
        return "half_open" if self._probing or now >= self._open_until else "open"

    def wait(self, now: float) -> float:
        """Returns how long, at the least, no call is admitted."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def admit(self, now: float) -> int | None:
        """Returns the pass of a call that may be made now; None: it may not.

        Who gets a pass tells how the call went: `succeeded`, `failed` or `dropped`.
        """
        if self._open_until is None:
            return self._pass
        if self._probing or now < self._open_until:
            return None
        self._probing = True
        self._pass += 1
        return self._pass

    def succeeded(self, admitted: int) -> None:
        """Counts a call that went well; one of an earlier pass says nothing any more."""
        if admitted != self._pass:
            return
        if self._probing:
            self._move(None)
        else:
            self._calls += 1

    def failed(self, admitted: int, now: float) -> bool:
        """A call did not; returns whether that opened the breaker."""
        if admitted != self._pass:
            return False
        if not self._probing:
            self._calls += 1
            self._failures.append((now, self._calls))
            if not self._too_many(now):
                return False
        self._move(now + self._policy.open_seconds)
        return True

    def dropped(self, admitted: int) -> None:
        """A call was given up for reasons of ours; it says nothing."""
        if admitted == self._pass:
            self._probing = False  # the next call is the probe

    def _too_many(self, now: float) -> bool:
        if len(self._failures) < self._policy.failures:
            return False
        since, before = self._failures[0]
        calls = self._calls - before + 1
        return (
            now - since <= self._policy.window_seconds
            and 2 * len(self._failures) >= calls
        )

    def _move(self, open_until: float | None) -> None:
        self._open_until = open_until
        self._probing = False
        self._pass += 1
        self._failures.clear()
