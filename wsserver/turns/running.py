"""The running turn of a conversation: its machine's actions made real.

Appends go to the log, tool calls to exactly one viewer, `waiting` to all.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import orjson
import structlog

from protocol.content import TextProof
from protocol.control import ToolRequest
from protocol.control import Waiting as WaitingFrame
from protocol.events import (
    CutEvent,
    DoneEvent,
    Reason,
    StartEvent,
    ToolResultEvent,
    UsageEvent,
)
from wsserver.engine.actions import (
    Action,
    Append,
    AppendDone,
    AppendText,
    AskTool,
    ShowWaiting,
)
from wsserver.engine.conversation import ConversationState, Waiting
from wsserver.engine.model import Failure, ModelRequest
from wsserver.engine.moments import timestamp
from wsserver.engine.prompt import PromptFold
from wsserver.engine.tools import Settling
from wsserver.engine.turn import Turn
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.kept_text import proof
from wsserver.turns.request import model_request
from wsserver.turns.runner import TurnRunner
from wsserver.turns.services import Services, Target
from wsserver.turns.viewer import Viewer

log = structlog.get_logger(__name__)

READ_BYTES = 262_144


class RunningTurn:
    """One turn from its `start` to its `done`.

    Attributes:
        turn: Its number.
        message: The waiting message that it answers.
        keep_through: Up to which number text stays, once it was cut.
        phase: Of the machine.
    """

    def __init__(
        self,
        message: Waiting,
        *,
        model: str,
        target: Target,
        connection: str | None,
        conversation: ConversationLog,
        state: ConversationState,
        viewers: Sequence[Viewer],
        services: Services,
        ended: Callable[[], None],
    ) -> None:
        clock = services.clock
        now, wall = clock.now(), clock.wall()
        request_id = f"req_{clock.token()}"
        self.turn = conversation.head + 1
        self.message = message
        self.keep_through: int | None = None
        self._log = conversation
        self._state = state
        self._viewers = viewers
        self._services = services
        self._target = target
        self._model = model
        self._connection = connection
        self._ended = ended
        self._asked: dict[str, str] = {}
        self._usage: UsageEvent | None = None
        self._first_token_counted = False
        conversation.append(
            StartEvent,
            turn=self.turn,
            message=message.seq,
            model=model,
            request_id=request_id,
            at=timestamp(wall),
        )
        machine = Turn(
            turn=self.turn,
            tools=state.tools(),
            limits=services.limits.turn,
            accepted_at=min(now, now - (wall - message.at)),
            now=now,
        )
        self._runner = TurnRunner(
            machine, self.turn, request_id, target, self, services
        )
        self._machine = machine
        services.metrics.turn_started(model)
        log.info("turn_started", turn=self.turn, model=model, request=request_id)
        if not viewers:
            self.detached()

    @property
    def phase(self) -> str:
        """Where the turn is."""
        return self._machine.phase

    async def run(self) -> None:
        """Runs the turn to its end."""
        await self._runner.run()

    # What happens elsewhere

    def stop(
        self,
        reason: Reason,
        by: str,
        cut: tuple[int, TextProof] | None = None,
    ) -> None:
        """Ends the turn before its time."""
        members: dict[str, Any] | None = None
        if cut is not None:
            self.keep_through, kept = cut
            members = {"keep_through": self.keep_through, "text": kept}
        now = self._services.clock.now()
        self._act(self._machine.stop(reason=reason, by=by, now=now, cut=members))

    def fail(self, code: str, message: str) -> None:
        """Ends the turn because the server can't go on with it."""
        failure = Failure(code=code, message=message, retryable=True)
        self._act(self._machine.fail(failure, self._services.clock.now()))

    def tool_result(
        self, call: str, status: Literal["ok", "error"], output: Any, by: str
    ) -> Settling:
        """Takes a tool's result."""
        now = self._services.clock.now()
        outcome, actions = self._machine.tool_result(call, status, output, by, now)
        self._act(actions)
        return outcome

    def tool_progress(self, call: str) -> None:
        """Extends a call's deadline."""
        self._machine.tool_progress(call, self._services.clock.now())
        self._act([])

    def attached(self, viewer: Viewer) -> None:
        """A connection has the conversation open from now on."""
        self._machine.attached()
        for call in self._machine.open_calls():
            if (
                call not in self._asked
                and self._machine.tool_of(call) in viewer.handles
            ):
                self._deliver(call, viewer)

    def left(self, viewer: Viewer) -> None:
        """A connection is gone; what it was asked for goes to the next."""
        for call, connection in list(self._asked.items()):
            if connection == viewer.connection:
                del self._asked[call]
                self._ask(call)
        if not self._viewers:
            self.detached()

    def detached(self) -> None:
        """Nobody has the conversation open."""
        grace: float | None = self._services.limits.detach_grace_seconds
        match self.message.on_disconnect:
            case "continue":
                grace = None
            case "cancel":
                grace = 0.0
            case None:
                detach = self._state.config.detach
                if detach:
                    grace = detach.grace_s
        self._machine.detached(grace, self._services.clock.now())
        self._act([])

    def _act(self, actions: list[Action]) -> None:
        self._runner.act(actions)

    # What the machine decided

    def perform(self, actions: list[Action]) -> None:
        """Appends and delivers what the machine decided."""
        for action in actions:
            match action:
                case AppendText():
                    self._log.append_text(
                        action.kind, self.turn, action.text, action.attrs
                    )
                    if not self._first_token_counted:
                        self._count_first_token()
                case Append():
                    self._append(action)
                case AppendDone():
                    self._done(action.members)
                    self._ended()
                case AskTool():
                    self._ask(action.call)
                case ShowWaiting():
                    self._show_waiting(action)
                case _:
                    pass

    async def request(self, turn: int, request_id: str) -> tuple[ModelRequest, int]:
        """Folds the prompt, once the message it answers is in the store."""
        await self._log.until_stored(self.turn)
        joining = self._state.steering(turn)
        if joining:
            self._log.touch()
        fold = PromptFold()
        fold.add(await self._log.whole(READ_BYTES))
        fold.join(waiting.seq for waiting in joining)
        request = model_request(self._state.config, self._target, fold, request_id)
        return request, len(orjson.dumps(request.messages))

    def _append(self, action: Append) -> None:
        event = self._log.append(action.event, turn=self.turn, **action.members)
        match event:
            case UsageEvent():
                self._usage = event
            case ToolResultEvent():
                self._asked.pop(event.call, None)
                self._services.metrics.tool_done(event.status, 0.0)
            case CutEvent():
                self.keep_through = event.keep_through
            case _:
                pass

    def _done(self, members: dict[str, Any]) -> None:
        through = self._log.head if self.keep_through is None else self.keep_through
        kept = proof(self._log.tail(self.turn), self.turn, through)
        done = self._log.append(DoneEvent, turn=self.turn, text=kept, **members)
        assert self._usage is not None, "the machine appends usage before done"
        self._services.metrics.turn_done(self._model, done, self._usage)
        if done.timing.stop_ms is not None:
            reason = done.reason or done.status
            self._services.metrics.interrupted(reason, done.timing.stop_ms / 1000)
        log.info(
            "turn_done",
            turn=self.turn,
            status=done.status,
            reason=done.reason,
            total_ms=done.timing.total_ms,
            ttft_ms=done.timing.ttft_ms,
        )

    def _count_first_token(self) -> None:
        self._first_token_counted = True
        seconds = self._machine.first_token_seconds
        if seconds is not None:
            self._services.metrics.first_token(self._model, seconds)

    def _show_waiting(self, action: ShowWaiting) -> None:
        frame = WaitingFrame(
            conversation=self._log.conversation,
            turn=self.turn,
            phase=action.phase,
            elapsed_ms=action.elapsed_ms,
        )
        for viewer in self._viewers:
            viewer.show_waiting(frame)

    def _ask(self, call: str) -> None:
        """Asks the sender's connection, else the one that came last."""
        name = self._machine.tool_of(call)
        if name is None:
            return
        able = [viewer for viewer in self._viewers if name in viewer.handles]
        if not able:
            if not self._machine.knows(name):
                self.tool_result(call, "error", f"There is no tool {name!r}.", "server")
            return
        first = [viewer for viewer in able if viewer.connection == self._connection]
        self._deliver(call, (first or able)[-1])

    def _deliver(self, call: str, viewer: Viewer) -> None:
        now = self._services.clock.now()
        delivery = self._machine.deliver(call, now)
        if delivery is None:
            return
        name, arguments, left_ms, again = delivery
        self._asked[call] = viewer.connection
        viewer.request_tool(
            ToolRequest(
                conversation=self._log.conversation,
                turn=self.turn,
                call=call,
                name=name,
                arguments=arguments,
                deadline_ms=left_ms,
                redelivered=again,
            )
        )
