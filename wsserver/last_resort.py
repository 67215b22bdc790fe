"""Ends the process when its own end does not come: a disk or a thread that hangs.

It waits in a thread of its own and asks nothing of the event loop. What was
acknowledged is stored by then, so it takes no more than a kill would.
"""

import os
from threading import Thread, Timer

import structlog

_TELL_SECONDS = 0.5

log = structlog.get_logger(__name__)


class LastResort:
    """When the process ends at the latest."""

    def __init__(self) -> None:
        """Begins without a limit."""
        self._timers: list[Timer] = []

    def end_within(self, seconds: float, code: int) -> None:
        """Ends the process after so many seconds at the latest.

        Args:
            seconds: From now; of several limits the first counts.
            code: Its exit code then.
        """
        timer = Timer(seconds, _end, (code,))
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def close(self) -> None:
        """Takes all limits back."""
        for timer in self._timers:
            timer.cancel()


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
        about="a disk or a thread hangs; what was acknowledged is stored",
    )
