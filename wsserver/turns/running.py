"""The running turn of a conversation: its machine's actions made real.

Appends go to the log, tool calls to exactly one viewer, `waiting` to all.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, assert_never

import orjson
import structlog

from protocol.content import TextProof
from protocol.control import Waiting as WaitingFrame
from protocol.events import (
    CutEvent,
    DoneEvent,
    Reason,
    StartEvent,
    TakeoverEvent,
    ToolResultEvent,
    TurnErrorEvent,
    UsageEvent,
)
from wsserver.engine.actions import (
    Action,
    Append,
    AppendDone,
    AppendText,
    AskTool,
    HostAction,
    ShowWaiting,
)
from wsserver.engine.conversation import ConversationState, Waiting, tools_of
from wsserver.engine.model import Failure, ModelRequest
from wsserver.engine.moments import timestamp
from wsserver.engine.tools import Settling
from wsserver.engine.turn import Turn
from wsserver.engine.usage import BYTES_PER_TOKEN
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.waiting import until_stored
from wsserver.turns.kept_text import proof
from wsserver.turns.request import fold_log, model_request
from wsserver.turns.runner import TurnRunner
from wsserver.turns.served_calls import ServedCalls
from wsserver.turns.server_tools import offered
from wsserver.turns.services import Services, Target
from wsserver.turns.tool_requests import ToolRequests
from wsserver.turns.turn_report import TurnReport
from wsserver.turns.viewer import Viewer

log = structlog.get_logger(__name__)


class RunningTurn:
    """One turn from its `start` to its `done`.

    Attributes:
        turn: Its number.
        message: The waiting message that it answers.
        config: The settings it began with, which it keeps; the server's tools in full.
        keep_through: Up to which number text stays, once it was cut.
        report: Tells operators of it.
    """

    __slots__ = (
        "_ended", "_first_token_counted", "_log", "_lost", "_machine", "_runner", "_sends",
        "_services", "_state", "_target", "_tools", "_viewers", "config", "keep_through",
        "message", "report", "turn",
    )  # fmt: skip

    def __init__(
        self,
        message: Waiting,
        *,
        report: TurnReport,
        target: Target,
        connection: str | None,
        conversation: ConversationLog,
        state: ConversationState,
        viewers: Sequence[Viewer],
        services: Services,
        ended: Callable[[], None],
        lost: Callable[[int], None],
    ) -> None:
        """Appends the `start`; `run` has to follow.

        Args:
            message: See the attributes.
            report: See the attributes.
            target: Where its model's name leads.
            connection: The connection that sent the message, if it is known.
            conversation: The log.
            state: The conversation's snapshot.
            viewers: Who has the conversation open; it changes.
            services: What conversations share.
            ended: Called when the `done` is in the log.
            lost: Called with its number when a defect ended its task: its `done` may
                not be in the log, and `ended` not have been called.
        """
        clock = services.clock
        now, wall = clock.now(), clock.wall()
        self.report = report
        self.turn = conversation.head + 1
        self.message = message
        self._sends = {(message.by, message.id)}
        self.config, served = offered(state.config, services.server_tools)
        self.keep_through: int | None = None
        self._log = conversation
        self._state = state
        self._viewers = viewers
        self._services = services
        self._target = target
        self._ended = ended
        self._lost = lost
        self._first_token_counted = False
        self._machine = Turn(
            turn=self.turn,
            tools=tools_of(self.config),
            response_schema=self.config.response_schema or None,
            limits=target.limits(services.limits.turn),
            accepted_at=min(now, now - (wall - message.at)),
            now=now,
            epoch=conversation.epoch,
        )
        self._runner = TurnRunner(self._machine, target, self, services)
        self._tools = ToolRequests(
            self._machine.tools,
            ServedCalls(
                served,
                batch=self._machine.tools,
                principal=message.by,
                conversation=conversation,
                services=services,
                ids=report.ids,
                settle=self._settle,
            ),
            conversation=conversation.conversation,
            turn=self.turn,
            sender=connection,
            viewers=viewers,
            clock=clock,
        )
        # From here on it has to end; what can fail came before.
        conversation.append(
            StartEvent,
            turn=self.turn,
            message=message.seq,
            model=report.model,
            request_id=report.request,
            at=timestamp(wall),
        )
        report.started()

    def answers(self, by: str, send: str) -> bool:
        """Whether it answers that send, as its message or as one that joined."""
        return (by, send) in self._sends

    @property
    def phase(self) -> str:
        """Where the turn is."""
        return self._machine.phase

    @property
    def interrupted(self) -> bool:
        """Whether it ends, or has ended, because somebody wanted it to."""
        return self._machine.interrupted

    async def run(self) -> None:
        """Runs the turn to its end."""
        structlog.contextvars.bind_contextvars(**self.report.ids)  # of its task alone
        if not self._viewers:
            self._runner.act(self._detached)
        try:
            await self._runner.run()
        except Exception:
            # The same boundary, where the machine can't say any more what is left to do.
            log.exception("turn_defective")
            self._lost(self.turn)
        # What refers to itself would hold the log's text until all garbage is collected.
        self._runner.let_go()
        self._tools.let_go()
        del self._ended, self._lost

    # What happens elsewhere

    def stop(
        self, reason: Reason, by: str, cut: tuple[int, TextProof] | None = None
    ) -> None:
        """Ends the turn before its time; what ended it first stays the reason.

        Args:
            reason: Why.
            by: Who wants it: a principal, or `server`.
            cut: The last number whose text stays, and the proof of that text. The
                first one counts; None keeps all.
        """
        members: dict[str, Any] | None = None
        if cut is not None:
            through, kept = cut
            members = {"keep_through": through, "text": kept}

        def decide() -> list[Action]:
            now = self._services.clock.now()
            return self._machine.stop(reason=reason, by=by, now=now, cut=members)

        self._runner.act(decide)

    def fail(self, code: str, message: str) -> None:
        """Ends the turn because the server can't go on with it."""
        failure = Failure(code=code, message=message, retryable=True)
        clock = self._services.clock
        self._runner.act(lambda: self._machine.fail(failure, clock.now()))

    def tool_result(
        self, call: str, status: Literal["ok", "error"], output: Any, by: str
    ) -> Settling:
        """Takes a client's result of a tool; the server's tools are not theirs."""
        if self._tools.served(call):
            return "unknown"
        return self._settle(call, status, output, by)

    def _settle(
        self, call: str, status: Literal["ok", "error"], output: Any, by: str
    ) -> Settling:
        outcome: Settling = "unknown"

        def decide() -> list[Action]:
            nonlocal outcome
            now = self._services.clock.now()
            outcome, actions = self._machine.tool_result(call, status, output, by, now)
            return actions

        self._runner.act(decide)
        return outcome

    def tool_progress(self, call: str) -> None:
        """Extends the deadline of a call that a client runs."""

        def take_note() -> None:
            if not self._tools.served(call):
                self._machine.tools.progress(call, self._services.clock.now())

        self._runner.act(take_note)

    def attached(self, viewer: Viewer) -> None:
        """A connection has the conversation open from now on."""

        def take_note() -> None:
            self._machine.attached()
            self._tools.attached(viewer)

        self._runner.act(take_note)

    def handles_changed(self, viewer: Viewer) -> None:
        """A connection handles other tools than before."""
        self._runner.act(lambda: self._tools.handles_changed(viewer))

    def left(self, viewer: Viewer) -> None:
        """A connection is gone; what it was asked for goes to the next."""

        def take_note() -> None:
            self._tools.left(viewer)
            if not self._viewers:
                self._detached()

        self._runner.act(take_note)

    def _detached(self) -> None:
        """Nobody has the conversation open."""
        grace: float | None = self._services.limits.detach_grace_seconds
        match self.message.on_disconnect:
            case "continue":
                grace = None
            case "cancel":
                grace = 0.0
            case None:
                if self.config.detach:
                    grace = self.config.detach.grace_s
        self._machine.detached(grace, self._services.clock.now())

    # What the machine decided

    def perform(self, action: HostAction) -> None:
        """Appends or delivers what the machine decided."""
        match action:
            case AppendText():
                self._log.append_text(action.kind, self.turn, action.text, action.attrs)
                if not self._first_token_counted:
                    self._first_token_came()
            case Append():
                self._append(action)
            case AppendDone():
                self._done(action.members)
                self._ended()
            case AskTool():
                self._tools.ask(action.call)
            case ShowWaiting():
                self._show_waiting(action)
            case _:
                assert_never(action)

    async def request(self) -> tuple[ModelRequest, int]:
        """Folds the prompt, once the messages it answers are in the store.

        Those that steer the turn join it here; none where it was stopped meanwhile, as
        they would be answered by nobody.
        """
        state, turn = self._state, self.turn
        await until_stored(self._log, max([turn, *state.steering(turn)]))
        fold, through = await fold_log(self._log)
        if self.phase == "connecting" and (joined := state.join(turn, through)):
            self._sends |= {(waiting.by, waiting.id) for waiting in joined}
        fold.waiting = {waiting.seq for waiting in state.queue}
        request = model_request(self.config, self._target, fold, self.report.request)
        size = len(orjson.dumps(request.messages))
        state.asked_tokens += size // BYTES_PER_TOKEN
        self._log.touch()  # a crash will not tell what the call has cost
        return request, size

    def _append(self, action: Append) -> None:
        if action.event is TakeoverEvent and not self.report.taken_over(
            action.members["model"]
        ):
            return
        event = self._log.append(action.event, turn=self.turn, **action.members)
        match event:
            case UsageEvent():
                self.report.used(event)
            case ToolResultEvent():
                self.report.tool_done(event, self._tools.settled(event.call))
            case TurnErrorEvent():
                self.report.failed(event)
            case CutEvent():
                self.keep_through = event.keep_through
            case _:
                pass

    def _done(self, members: dict[str, Any]) -> None:
        through = self._log.head if self.keep_through is None else self.keep_through
        kept = proof(self._log.tail(self.turn), self.turn, through)
        done = self._log.append(DoneEvent, turn=self.turn, text=kept, **members)
        self.report.ended(done)
        if not self._first_token_counted:  # a call's name can be all that came
            self._first_token_came()
        if done.timing.stop_ms is not None:
            self._log.hurry()
        self.report.took(done, self._machine.stopped_in)

    def _first_token_came(self) -> None:
        self._first_token_counted = True
        self._log.hurry()
        seconds = self._machine.first_token_seconds
        if seconds is not None:
            self.report.first_token(seconds)

    def _show_waiting(self, action: ShowWaiting) -> None:
        frame = WaitingFrame(
            conversation=self._log.conversation,
            turn=self.turn,
            phase=action.phase,
            elapsed_ms=action.elapsed_ms,
        )
        for viewer in self._viewers:
            viewer.show_waiting(frame)
