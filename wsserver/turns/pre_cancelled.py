"""Sends that were taken back before they arrived."""

from wsserver.turns.clock import Clock

REMEMBERED_SECONDS = 60.0


class PreCancelled:
    """Remembers them for a while, by conversation, principal and id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str, str], float] = {}

    def add(self, key: str, by: str, send: str) -> None:
        """Remembers a send."""
        now = self._clock.now()
        for known, until in list(self._until.items()):
            if until > now:
                break  # they are in the order in which they are forgotten
            del self._until[known]
        self._until.pop((key, by, send), None)
        self._until[key, by, send] = now + REMEMBERED_SECONDS

    def take(self, key: str, by: str, send: str) -> bool:
        """Says, once, whether the send was taken back."""
        return self._until.pop((key, by, send), 0.0) > self._clock.now()
