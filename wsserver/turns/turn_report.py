"""What operators are told of one turn: its lines in the log, and what is counted.

However a turn ends, in a model's last word, a defect or the next start of the server,
its end is told here, once. It does not wait for the commit: a kill in between would
lose the line, and a store that hangs hold it back, just when it is wanted. So a kill
before the commit has the next start tell it again.
"""

import structlog

from protocol.events import DoneEvent, ToolResultEvent, TurnErrorEvent, UsageEvent
from wsserver.engine.timing import in_one_lump
from wsserver.turns.services import TurnMetrics

log = structlog.get_logger(__name__)


class TurnReport:
    """Tells of one turn.

    Attributes:
        ids: What lines about it have: its own, whosever task says them.
        model: The model's name, as the client knows it.
        request: Its request id.
    """

    __slots__ = (
        "_answering", "_code", "_metrics", "_started", "_usage", "ids", "model", "request",
    )  # fmt: skip

    def __init__(
        self,
        metrics: TurnMetrics,
        *,
        key: str,
        turn: int,
        request: str,
        model: str,
        connection: str | None = None,
    ) -> None:
        """Takes what the turn is called.

        Args:
            metrics: Counts.
            key: The conversation's key.
            turn: Its number.
            request: See the attributes.
            model: See the attributes.
            connection: The connection that sent its message, if it is known.
        """
        self.ids: dict[str, str | int | None] = {
            "key": key,
            "turn": turn,
            "request": request,
            "connection": connection,
        }
        self.model = self._answering = model
        self.request = request
        self._metrics = metrics
        self._started = False
        self._code: str | None = None
        self._usage: UsageEvent | None = None

    def started(self) -> None:
        """Its `start` is in the log; told again it says nothing."""
        if self._started:
            return
        self._started = True
        log.info("turn_started", **self.ids, model=self.model)
        self._metrics.turn_started(self.model)

    def taken_over(self, model: str) -> bool:
        """A model answers; returns whether it is another than before."""
        before, self._answering = self._answering, model
        return model != before

    def first_token(self, seconds: float) -> None:
        """The first token came, so long after the message."""
        self._metrics.first_token(self.model, seconds)

    def tool_done(self, result: ToolResultEvent, seconds: float) -> None:
        """A call was settled, so long after it came up."""
        self._metrics.tool_done(result.status, seconds)

    def used(self, usage: UsageEvent) -> None:
        """That is what it cost; `done` follows."""
        self._usage = usage

    def failed(self, error: TurnErrorEvent) -> None:
        """That is why it failed; `done` follows."""
        self._code = error.code

    def ended(self, done: DoneEvent) -> None:
        """Its last event is in the log."""
        log.info(
            "turn_done",
            **self.ids,
            status=done.status,
            reason=done.reason,
            code=self._code,
            total_ms=done.timing.total_ms,
            ttft_ms=done.timing.ttft_ms,
        )
        self._metrics.turn_ended(self.model, done, self._code)

    def took(self, done: DoneEvent, stopped_in: str) -> None:
        """It has ended, and its times and tokens are known.

        Args:
            done: Its last event.
            stopped_in: The phase in which it was stopped, if it was.
        """
        metrics, stop_ms = self._metrics, done.timing.stop_ms
        assert self._usage is not None, "the machine appends usage before done"
        if in_one_lump(done, self._usage):
            log.warning("answer_in_one_lump", **self.ids, model=self._answering)
        metrics.turn_took(self.model, self._answering, done, self._usage, self._code)
        if stop_ms is not None:
            metrics.interrupted(stopped_in, stop_ms / 1000)
