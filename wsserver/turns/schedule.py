"""Which message of a conversation gets its turn, and when: one at a time."""

from collections.abc import Callable, Sequence

import structlog

from wsserver.engine.conversation import ConversationState, Waiting
from wsserver.engine.ending import DEFECT, failed, unknown_model
from wsserver.engine.model import Failure
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import space_of
from wsserver.turns.recovery import end_by_log
from wsserver.turns.running import RunningTurn
from wsserver.turns.services import Services, Target
from wsserver.turns.turn_report import TurnReport
from wsserver.turns.viewer import Viewer
from wsserver.turns.withdrawn import end_at_once

log = structlog.get_logger(__name__)


class Schedule:
    """The queue of a conversation, and the turn that runs.

    Attributes:
        turn: The turn that runs: from its `start` to its `done`; else None.
        last: The turn before that, if it ran since the conversation was loaded.
    """

    def __init__(
        self,
        log: ConversationLog,
        state: ConversationState,
        viewers: Sequence[Viewer],
        services: Services,
        ended: Callable[[], None],
    ) -> None:
        """Begins with no turn; messages may wait in the state's queue.

        Args:
            log: Where turns are appended.
            state: Holds the queue.
            viewers: Who has the conversation open; it changes.
            services: What conversations share.
            ended: Told when a turn has ended and no other has begun.
        """
        self.turn: RunningTurn | None = None
        self.last: RunningTurn | None = None
        self._log = log
        self._state = state
        self._viewers = viewers
        self._services = services
        self._on_ended = ended
        self._space = space_of(log.key)
        self._stopped = False
        self._senders: dict[int, str] = {}  # connections, by number of the message

    @property
    def needed_from(self) -> int:
        """The first number that a turn which runs or is to come needs."""
        needed = [waiting.seq for waiting in self._state.queue]
        if self.turn is not None:
            needed.append(self.turn.message.seq)
        return min(needed, default=self._log.head + 1)

    def add(self, waiting: Waiting, connection: str | None) -> None:
        """Lets a message wait; `start_next` has to follow.

        Args:
            waiting: The message.
            connection: The connection that sent it, if it has the conversation open.
        """
        if connection is not None:
            self._senders[waiting.seq] = connection
        self._state.enqueue(waiting)

    def start_next(self) -> None:
        """Gives waiting messages their turns, as far as that can be now."""
        services = self._services
        while self.turn is None and not (
            self._stopped
            or self._log.deleted
            or services.draining
            or services.failing()
        ):
            if not self._state.queue or self._has_to_wait():
                return
            waiting = self._state.next()
            assert waiting is not None, "the queue is not empty"
            self._begin(waiting)

    def stop(self) -> None:
        """Starts nothing any more: the conversation leaves memory."""
        self._stopped = True

    def _has_to_wait(self) -> bool:
        """Waits for another turn's end when the space has its limit running."""
        services = self._services
        if services.running.of(self._space) < services.limits.active_turns:
            return False
        services.running.wait(self._space, self.start_next)
        return True

    def _begin(self, waiting: Waiting) -> None:
        """Starts a message's turn, or ends it where it can't run."""
        services = self._services
        connection = self._senders.pop(waiting.seq, None)
        failure: Failure | None = None
        turn = self._log.head + 1
        report = TurnReport(
            services.metrics,
            key=self._log.key,
            turn=turn,
            request=f"req_{services.clock.token()}",
            model=self._state.config.model or services.models.default,
            connection=connection,
        )
        if not waiting.withdrawn:
            try:
                target = services.models.resolve(report.model)
                if target is not None:
                    self._start(waiting, report, target, connection)
                    return
                failure = unknown_model(report.model)
            except Exception:
                # Whoever made it begin is not to fail for a defect of this turn.
                log.exception("turn_not_started", **report.ids)
                failure, self.turn = DEFECT, None
                if self._log.head >= turn:  # its `start` is there
                    self._state.running = self._state.last_turn = turn
                    report.started()
                    self._end_by_log(report)
                    return
        self._state.last_turn = end_at_once(
            self._log, waiting, report, services, failure
        )

    def _start(
        self,
        waiting: Waiting,
        report: TurnReport,
        target: Target,
        connection: str | None,
    ) -> None:
        services = self._services
        previous = self._state.last_turn
        turn = RunningTurn(
            waiting,
            report=report,
            target=target,
            connection=connection,
            conversation=self._log,
            state=self._state,
            viewers=self._viewers,
            services=services,
            ended=self._turn_ended,
            lost=self._turn_lost,
        )
        self.turn = turn
        self._state.running = self._state.last_turn = turn.turn
        self._state.asked_tokens = 0
        self._log.keep_from(previous or turn.turn)
        services.running.began(self._space)
        services.tasks.start_soon(turn.run, name=f"turn {turn.turn}")

    def _turn_lost(self, turn: int) -> None:
        """A defect ended a turn's task: the log tells what the turn still lacks."""
        try:
            if self._state.running == turn:
                assert self.turn is not None, "it is the one that runs"
                self._end_by_log(self.turn.report)
                self._turn_ended()
                self.last = None  # what it would say of late results, nobody can tell
            else:
                self._go_on()
        except Exception:
            # Its log is what is defective: the next start of the server tries again.
            log.exception("turn_not_ended", key=self._log.key)

    def _end_by_log(self, report: TurnReport) -> None:
        end_by_log(
            self._log, self._state, self._services, failed(DEFECT), report=report
        )

    def _turn_ended(self) -> None:
        """The turn's `done` is in the log: the conversation is free."""
        self.last, self.turn = self.turn, None
        self._state.running = self._state.asked_tokens = 0
        self._services.running.ended(self._space)
        self._log.compact_soon()
        self._go_on()

    def _go_on(self) -> None:
        """Lets those begin that waited for the turn's end."""
        waiting = {message.seq for message in self._state.queue}
        for joined in self._senders.keys() - waiting:
            del self._senders[joined]
        self.start_next()
        self._services.running.let_begin(self._space)
        if self.turn is None:
            self._on_ended()
