"""What operators are told of one turn: its lines in the log, and what is counted."""

from collections.abc import Mapping
from typing import Any

import structlog

from protocol.events import DoneEvent, ToolResultEvent, UsageEvent
from wsserver.engine.timing import in_one_lump
from wsserver.turns.services import TurnMetrics

log = structlog.get_logger(__name__)


class TurnReport:
    """Tells of one turn.

    Attributes:
        ids: What lines about it have: its own, whosever task says them.
    """

    __slots__ = ("_answering", "_metrics", "_model", "_usage", "ids")

    def __init__(
        self, metrics: TurnMetrics, model: str, ids: Mapping[str, Any]
    ) -> None:
        """Counts a turn that is to begin; `started` has to follow.

        Args:
            metrics: Counts.
            model: The model's name, as the client knows it.
            ids: See the attributes.
        """
        self.ids = ids
        self._metrics = metrics
        self._model = self._answering = model
        self._usage: UsageEvent | None = None
        metrics.turn_started(model)

    def started(self) -> None:
        """Its `start` is in the log."""
        log.info("turn_started", **self.ids, model=self._model)

    def taken_over(self, model: str) -> bool:
        """A model answers; returns whether it is another than before."""
        before, self._answering = self._answering, model
        return model != before

    def first_token(self, seconds: float) -> None:
        """The first token came, so long after the message."""
        self._metrics.first_token(self._model, seconds)

    def tool_done(self, result: ToolResultEvent, seconds: float) -> None:
        """A call was settled, so long after it came up."""
        self._metrics.tool_done(result.status, seconds)

    def used(self, usage: UsageEvent) -> None:
        """That is what it cost; `done` follows."""
        self._usage = usage

    def done(self, done: DoneEvent, stopped_in: str) -> None:
        """It has ended.

        Args:
            done: Its last event.
            stopped_in: The phase in which it was stopped, if it was.
        """
        timing, metrics = done.timing, self._metrics
        assert self._usage is not None, "the machine appends usage before done"
        if in_one_lump(done, self._usage):
            log.warning("answer_in_one_lump", **self.ids, model=self._answering)
        metrics.turn_done(self._model, self._answering, done, self._usage)
        if timing.stop_ms is not None:
            metrics.interrupted(stopped_in, timing.stop_ms / 1000)
        log.info(
            "turn_done",
            **self.ids,
            status=done.status,
            reason=done.reason,
            total_ms=timing.total_ms,
            ttft_ms=timing.ttft_ms,
        )
