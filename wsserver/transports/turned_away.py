"""Counts clients that are turned away, and tells of them in one line a second.

A crowd comes within moments; a line for each of it would be a second crowd.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Literal

import structlog

Reason = Literal["full", "crowd", "address", "draining", "handshake", "origin"]
"""Why: `max_connections` are taken; more came at once than can be listened to; one
address has its share; the server is about to stop; TLS took too long; it is a page of
an origin that may not connect."""

TELL_SECONDS = 1.0

_MOST_SHOWN = 200

log = structlog.get_logger(__name__)


class TurnedAway:
    """Those of one listener."""

    def __init__(self, count: Callable[[Reason], None]) -> None:
        """Takes what counts each for the metrics."""
        self._count = count
        self._untold = Counter[Reason]()
        self._origin = ""  # of the last page that was
        self._timer: asyncio.TimerHandle | None = None

    def add(self, reason: Reason) -> None:
        """Counts one; the log is told where the server has no room or the peer stalls."""
        self._count(reason)
        if reason in ("full", "crowd", "handshake", "origin"):
            self._untold[reason] += 1
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(TELL_SECONDS, self.tell)

    def add_page(self, origin: str) -> None:
        """Counts a page that may not connect, which an operator may have forgotten."""
        shown = origin[:_MOST_SHOWN]
        self._origin = shown if shown.isprintable() else ascii(shown)[1:-1]
        self.add("origin")

    def tell(self) -> None:
        """Tells now of those that were not told of yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        late = self._untold.pop("handshake", 0)
        if late:
            log.warning(
                "handshakes_dropped",
                clients=late,
                about="their TLS handshakes took too long",
            )
        pages = self._untold.pop("origin", 0)
        if pages:
            log.warning(
                "origin_refused",
                clients=pages,
                origin=self._origin,
                about="if that page is yours, name its origin in allowed_origins",
            )
        if self._untold:
            log.warning(
                "clients_turned_away",
                **self._untold,
                about="there are as many as max_connections and the open files"
                " allow; they were told to come back, or dropped where TLS comes first",
            )
            self._untold.clear()
