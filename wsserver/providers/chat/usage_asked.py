"""Remembers which of an upstream's models mind being asked for usage. Pure.

A gateway passes the question on: one of its models may refuse what all others answer,
and what refuses today is another version tomorrow.
"""

from typing import Final

PAUSE_SECONDS: Final = 3600.0
"""So long a model that minded is not asked: one more request an hour is cheap."""

MOST_MODELS: Final = 1000
"""Clients may choose names; of more than these the oldest are forgotten, and asked."""


class UsageAsked:
    """Says whether to ask a model; `now` is in seconds on a clock that never turns back."""

    def __init__(self) -> None:
        self._minded_at: dict[str, float] = {}  # in this order

    def asks(self, model: str, now: float) -> bool:
        """Whether to ask."""
        minded_at = self._minded_at.get(model)
        return minded_at is None or now - minded_at >= PAUSE_SECONDS

    def minded(self, model: str, now: float) -> None:
        """Takes note that a model answers only where it is not asked."""
        self._minded_at.pop(model, None)
        self._minded_at[model] = now
        if len(self._minded_at) > MOST_MODELS:
            del self._minded_at[next(iter(self._minded_at))]
