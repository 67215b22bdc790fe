"""Ends the process when its own end does not come: something hangs.

That may be a disk, a thread, or the event loop with a tool that never awaits. It waits in
a thread of its own and asks nothing of the loop. What was
acknowledged is stored by then, so it takes no more than a kill would.
"""

import os
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

import structlog

_TELL_SECONDS = 0.5

log = structlog.get_logger(__name__)


class LastResort:
    """When the process ends at the latest."""

    def __init__(self) -> None:
        self._limits = SimpleQueue[tuple[float, int] | None]()
        # Begun now: who is called by a signal may begin no thread.
        Thread(target=self._wait, name="last_resort", daemon=True).start()

    def end_within(self, seconds: float, code: int) -> None:
        """Ends the process after so many seconds at the latest.

        It may be called by a signal, whatever that interrupts.

        Args:
            seconds: From now; the earliest limit wins.
            code: Its exit code then.
        """
        self._limits.put((monotonic() + seconds, code))

    def close(self) -> None:
        """Takes all limits back, for good."""
        self._limits.put(None)

    def _wait(self) -> None:
        first = self._limits.get()
        while first is not None:
            try:
                another = self._limits.get(timeout=max(0.0, first[0] - monotonic()))
            except Empty:
                _end(first[1])
            else:
                first = another and min(first, another)


def _end(code: int) -> None:
    # The log may be what hangs.
    teller = Thread(target=_tell, args=(code,), daemon=True)
    teller.start()
    teller.join(_TELL_SECONDS)
    os._exit(code)


def _tell(code: int) -> None:
    log.error(
        "stopped_by_force",
        exit_code=code,
        about="a disk, a thread or the event loop hangs; what was acknowledged is stored",
    )
