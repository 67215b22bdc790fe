"""Holds back what one upstream says until it has shown something.

Until then another upstream may still take over, and nobody must have seen anything
of this one; from then on everything goes through as it comes.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

import anyio

from wsserver.engine.model import (
    Answering,
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
)
from wsserver.engine.provider import Sink

BROKEN_OFF: Final = Failure(
    code="upstream_error",
    message="The upstream ended without an answer.",
    retryable=True,
)


class Gate:
    """Stands between one upstream and a turn.

    Attributes:
        failure: Why there is no answer; None from when there is one.
    """

    def __init__(
        self,
        sink: Sink,
        patience: anyio.CancelScope,
        *,
        name: str,
        code: str | None,
        answered: Callable[[], None],
    ) -> None:
        """Lets nothing through yet.

        Args:
            sink: Takes what goes through.
            patience: Around the calls of this upstream; it has no end any more once
                there is an answer.
            name: What clients know the model by.
            code: Why the one before does not answer; None for the first.
            answered: Told when there is an answer.
        """
        self.failure: Failure | None = BROKEN_OFF
        self._sink = sink
        self._patience = patience
        self._name = name
        self._code = code
        self._on_answered = answered
        self._asked_at = 0.0

    def asked(self) -> None:
        """A request goes out."""
        self.failure = BROKEN_OFF
        self._asked_at = anyio.current_time()

    def take(self, events: Sequence[ModelEvent]) -> None:
        """Takes what one read held."""
        if self.failure is None:
            self._sink(events)
        elif self._patience.cancel_called:
            pass  # too late by a hair: the next one is to be asked
        elif any(map(_shows, events)):
            self._answered(events)
        elif events and isinstance(events[-1], Finished):
            self.failure = _failure(events[-1])
            if self.failure is None:
                self._answered(events)
        else:
            self._sink(events)  # signs of life

    def _answered(self, events: Sequence[ModelEvent]) -> None:
        self.failure = None
        self._patience.deadline = inf
        self._on_answered()
        seconds = anyio.current_time() - self._asked_at
        self._sink([Answering(self._name, seconds, self._code), *events])


def _shows(event: ModelEvent) -> bool:
    """Says whether a turn shows an event, as `wsserver.engine.turn` does."""
    if isinstance(event, CallFragment):
        return bool(event.text or event.name)
    return not isinstance(event, Finished | Answering)


def _failure(end: Finished) -> Failure | None:
    """Returns what is wrong with an end before which nothing was shown."""
    match end.reason:
        case "error":
            return end.failure or BROKEN_OFF
        case "incomplete":
            return BROKEN_OFF
        case _:
            return None
