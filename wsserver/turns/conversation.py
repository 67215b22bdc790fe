"""One conversation in memory: commands in, events into its log.

All methods act at once and without awaiting, so a command is applied whole
before the next one of any connection. What leaves the process (events and
replies) waits for the store; what happens in here does not.
"""

from collections.abc import Callable
from typing import assert_never

from protocol.commands import Command, Configure, Interrupt, Send, ToolResult
from protocol.content import Config
from protocol.control import Reply
from protocol.events import ConfigEvent, MessageEvent
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState, Waiting, configured
from wsserver.engine.moments import timestamp
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.admission import (
    check_config,
    check_open,
    check_output,
    check_send,
)
from wsserver.turns.applied import Applied
from wsserver.turns.errors import refusal
from wsserver.turns.interrupt import PreCancelled, interrupt, stop_turn
from wsserver.turns.receipts import Receipts
from wsserver.turns.running import RunningTurn
from wsserver.turns.services import Services, Target
from wsserver.turns.viewer import Viewer
from wsserver.turns.withdrawn import end_at_once

Applicable = Configure | Send | Interrupt | ToolResult


class Conversation:
    """A conversation that is in use.

    Attributes:
        log: Its log.
        state: The snapshot that is stored with the log.
        turn: The turn that runs, None while none does.
    """

    def __init__(
        self,
        log: ConversationLog,
        state: ConversationState,
        receipts: Receipts,
        services: Services,
        unused: Callable[["Conversation"], None],
    ) -> None:
        self.log = log
        self.state = state
        self.turn: RunningTurn | None = None
        self._last: RunningTurn | None = None
        self._receipts = receipts
        self._services = services
        self._on_unused = unused
        self._space = log.key.rpartition("/")[0]
        self._viewers: list[Viewer] = []
        self._pre_cancelled = PreCancelled(services.clock)
        self._senders: dict[int, str] = {}

    @property
    def running(self) -> int:
        """The running turn's number, or 0."""
        return self.state.running

    @property
    def deleted(self) -> bool:
        """Whether it is gone from the store."""
        return self.log.deleted

    @property
    def last_ids(self) -> list[str]:
        """Ids of the newest sends, oldest first."""
        return list(self.state.last_ids)

    @property
    def unused(self) -> bool:
        """Whether it may leave memory: nobody watches, nothing runs, all is stored."""
        return not self._viewers and self.turn is None and self.log.clean

    # Viewers

    def attach(self, viewer: Viewer) -> None:
        """Adds a connection, and offers it the tool calls that nobody runs."""
        self._viewers.append(viewer)
        if self.turn is not None:
            self.turn.attached(viewer)
        else:
            self._start_next()

    def detach(self, viewer: Viewer) -> None:
        """Removes a connection; harmless when it is not there."""
        if viewer not in self._viewers:
            return
        self._viewers.remove(viewer)
        if self.turn is not None:
            self.turn.left(viewer)
        self._on_unused(self)

    # Commands

    def apply(
        self, command: Applicable, principal: Principal, viewer: Viewer | None
    ) -> Applied:
        """Applies a command, or says again what was said when it was applied.

        Raises:
            CommandError: It was refused; nothing changed.
        """
        known = self.recall(command, principal)
        if known is not None:
            return known
        applied = self._apply(command, principal, viewer)
        self.keep(command, principal, applied.reply)
        return applied

    def recall(self, command: Command, principal: Principal) -> Applied | None:
        """Returns what came of a command that was applied before.

        Raises:
            CommandError: Its id was used for another content.
        """
        known = self._receipts.find(principal.name, command)
        return None if known is None else Applied(reply=known, through=self.log.head)

    def keep(self, command: Command, principal: Principal, reply: Reply) -> None:
        """Keeps the receipt of a command that was applied."""
        at = self._services.clock.wall()
        self.log.remember(self._receipts.add(principal.name, command, reply, at))

    def tool_progress(self, call: str) -> None:
        """Extends an open call's deadline; ignored for any other."""
        if self.turn is not None:
            self.turn.tool_progress(call)

    def _apply(
        self, command: Applicable, principal: Principal, viewer: Viewer | None
    ) -> Applied:
        match command:
            case Send():
                return self._send(command, principal, viewer)
            case Interrupt():
                return interrupt(self, command, principal, viewer, self._pre_cancelled)
            case ToolResult():
                return self._tool_result(command, principal)
            case Configure():
                return self.configure(command.id, command.config)
            case _:
                assert_never(command)

    def configure(self, id_: str, change: Config) -> Applied:
        """Changes the settings for the turns that start from here on.

        Raises:
            CommandError: No turn could run with them.
        """
        check_open(self._services)
        config = configured(self.state.config, change)
        check_config(config, self._services)
        self.state.config = config
        event = self.log.append(ConfigEvent, config=config)
        reply = Reply(re=id_, ok=True, outcome="configured", seq=event.seq)
        return Applied(reply=reply, through=event.seq)

    def _send(
        self, command: Send, principal: Principal, viewer: Viewer | None
    ) -> Applied:
        self._admit(command)
        running = self.turn
        steers = running.turn if running and command.policy == "steer" else 0
        wall = self._services.clock.wall()
        event = self.log.append(
            MessageEvent,
            id=command.id,
            role="user",
            content=command.content,
            by=principal.name,
            at=timestamp(wall),
            metadata=command.metadata,
            steers=steers or None,
        )
        waiting = Waiting(
            seq=event.seq,
            id=command.id,
            by=principal.name,
            at=wall,
            steers=steers,
            on_disconnect=command.on_disconnect,
        )
        if self._pre_cancelled.take(principal.name, command.id):
            waiting.withdrawn = "by_client"
        if viewer is not None:
            self._senders[event.seq] = viewer.connection
        self.state.sent(command.id)
        reply = Reply(re=command.id, ok=True, seq=event.seq)
        if running is None:
            self.state.queue.append(waiting)
            self._start_next()
            reply.outcome, reply.turn = "started", self.state.last_turn
        elif command.policy == "interrupt":
            self.state.queue.insert(0, waiting)
            by, seen = principal.name, command.seen_seq
            stop_turn(self, running, "superseded", by, None, seen, viewer)
            reply.outcome = "queued"
        else:
            self.state.queue.append(waiting)
            reply.outcome = "steering" if steers else "queued"
        return Applied(reply=reply, through=self.log.head)

    def _admit(self, command: Send) -> None:
        """Refuses a send that can't get a turn."""
        services = self._services
        check_open(services)
        check_send(command, services)
        check_config(self.state.config, services)
        if self.turn is None:
            active = services.active.get(self._space, 0)
            if active >= services.limits.active_turns:
                raise refusal(
                    "too_many_turns",
                    f"{active} turns are running, which is the limit; wait for the"
                    " end of one and send this again under the same id.",
                    retry_after_ms=1000,
                )
            return
        if command.policy == "reject":
            raise refusal("busy", "A turn is running and the policy is `reject`.")
        waits = sum(not waiting.withdrawn for waiting in self.state.queue)
        if waits >= services.limits.queued and command.policy != "interrupt":
            raise refusal(
                "queue_full",
                f"{waits} messages are waiting, which is the limit; wait for the end"
                " of a turn and send this again under the same id.",
                retry_after_ms=1000,
            )

    def _tool_result(self, command: ToolResult, principal: Principal) -> Applied:
        check_output(command, self._services.limits.tool_output_bytes)
        turn = self.turn or self._last
        outcome = "unknown"
        if turn is not None and command.error is None:
            outcome = turn.tool_result(
                command.call, "ok", command.output, principal.name
            )
        elif turn is not None and command.error is not None:
            note = command.error.message or "The tool failed without saying why."
            outcome = turn.tool_result(command.call, "error", note, principal.name)
        reply = Reply(re=command.id, ok=True, outcome=outcome)
        return Applied(reply=reply, through=self.log.head)

    # Turns

    def shut_down(self) -> None:
        """Ends a running turn because the server stops; starts no other."""
        if self.turn is not None:
            self.turn.stop("server_shutdown", "server")

    def store_failed(self) -> None:
        """Ends a running turn because its events can't be stored."""
        if self.turn is not None:
            message = "The log can't be written at the moment."
            self.turn.fail("store_unavailable", message)

    def delete(self) -> None:
        """Stops the running turn and forgets those that wait."""
        self.state.queue.clear()
        if self.turn is not None:
            self.turn.stop("by_client", "server")
        self.log.delete()

    def _start_next(self) -> None:
        """Gives the next waiting message its turn."""
        services = self._services
        while self.turn is None and not (self.log.deleted or services.draining):
            waiting = self.state.next()
            if waiting is None:
                return
            model = self.state.config.model or services.models.default
            target = services.models.resolve(model)
            previous = self.state.last_turn
            if waiting.withdrawn or target is None:
                self.state.last_turn = end_at_once(
                    self.log, waiting, model, services.clock
                )
            else:
                self._start(waiting, model, target)
                self.log.turn_began(previous or self.state.last_turn)

    def _start(self, waiting: Waiting, model: str, target: Target) -> None:
        services = self._services
        turn = RunningTurn(
            waiting,
            model=model,
            target=target,
            connection=self._senders.pop(waiting.seq, None),
            conversation=self.log,
            state=self.state,
            viewers=self._viewers,
            services=services,
            ended=self._turn_ended,
        )
        self.turn = turn
        self.state.running = self.state.last_turn = turn.turn
        services.active[self._space] = services.active.get(self._space, 0) + 1
        services.tasks.start_soon(turn.run, name=f"turn {turn.turn}")

    def _turn_ended(self) -> None:
        active = self._services.active
        active[self._space] -= 1
        if not active[self._space]:
            del active[self._space]
        if not active:
            self._services.quiet.set()
        self._last, self.turn = self.turn, None
        self.state.running = 0
        self.log.compact_soon()
        self._start_next()
        self._on_unused(self)
