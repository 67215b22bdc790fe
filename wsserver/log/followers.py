"""Wakes who follows a log, none of whom is to fail for a defect of another."""

from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger(__name__)


def wake_all(wakes: Iterable[Callable[[], None]]) -> None:
    """Calls them all; what one raises is logged."""
    for wake in wakes:
        try:
            wake()
        except Exception:
            # The boundary of a follower: the log and the others go on.
            log.exception("follower_defective")
