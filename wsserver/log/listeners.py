"""Tells all who are to know of something; none fails for a defect of another."""

from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger(__name__)


def tell_all(listeners: Iterable[Callable[[], object]]) -> None:
    """Calls them all; what one raises is logged."""
    for tell in listeners:
        try:
            tell()
        except Exception:
            # The boundary of a listener: who tells and the others go on.
            log.exception("listener_defective")
