"""One conversation in memory: commands in, events into its log.

All methods act at once and without awaiting, so a command is applied whole
before the next one of any connection. What leaves the process (events and
replies) waits for the store; what happens in here does not.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, assert_never

from msgspec import UNSET

from protocol.commands import Command, Configure, Interrupt, Send, ToolResult
from protocol.content import Config
from protocol.control import Reply
from protocol.events import ConfigEvent, MessageEvent
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState, Waiting, configured
from wsserver.engine.moments import timestamp
from wsserver.engine.tools import SILENT_FAILURE
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import Entry
from wsserver.log.reading import read_whole
from wsserver.log.store import space_of
from wsserver.turns.admission import (
    check_change,
    check_config,
    check_open,
    check_output,
    check_params,
    check_queue,
    check_send,
)
from wsserver.turns.applied import Applied
from wsserver.turns.interrupt import first_needed, interrupt, stop_turn
from wsserver.turns.pre_cancelled import PreCancelled
from wsserver.turns.receipts import Receipts
from wsserver.turns.running import RunningTurn
from wsserver.turns.schedule import Schedule
from wsserver.turns.services import Services
from wsserver.turns.viewer import Viewer

_LEFT = "a conversation that has left memory has to be found again"

Applicable = Configure | Send | Interrupt | ToolResult


class Conversation:
    """A conversation that is in use.

    Attributes:
        log: Its log.
        state: The snapshot that is stored with the log.
    """

    def __init__(
        self,
        log: ConversationLog,
        state: ConversationState,
        *,
        receipts: Receipts,
        services: Services,
        pre_cancelled: PreCancelled,
        unused: Callable[[str], None],
    ) -> None:
        """Starts no turn; a message that waits gets one when somebody attaches.

        Args:
            log: See the attributes.
            state: See the attributes.
            receipts: Of the commands that were applied before.
            services: What conversations share.
            pre_cancelled: Sends that were taken back before they arrived.
            unused: Told its key when it may be that nobody needs it in memory any more.
        """
        self.log = log
        self.state = state
        self._receipts = receipts
        self._services = services
        self._pre_cancelled = pre_cancelled
        # Nothing in here refers back to the conversation: without such a circle it is
        # gone, with its log's text, as soon as it has left memory.
        self._on_unused = partial(unused, log.key)
        self._space = space_of(log.key)
        self._viewers: list[Viewer] = []
        self._holds = 0
        self._left = False
        self._schedule = Schedule(log, state, self._viewers, services, self._on_unused)

    @property
    def turn(self) -> RunningTurn | None:
        """The turn that runs: from its `start` to its `done`; else None."""
        return self._schedule.turn

    @property
    def running(self) -> int:
        """The running turn's number, or 0."""
        return self.state.running

    @property
    def deleted(self) -> bool:
        """Whether it is gone from the store."""
        return self.log.deleted

    def last_ids(self, by: str) -> list[str]:
        """Returns the ids of a principal's newest sends, oldest first."""
        return [id_ for sender, id_ in self.state.last_ids if sender == by]

    @property
    def server_tools(self) -> Sequence[str]:
        """Names of the tools that its turns may have the server run."""
        return self._services.server_tools.names()

    @property
    def unused(self) -> bool:
        """Whether it may leave memory: nobody watches, nothing runs, all is stored."""
        busy = self._viewers or self._holds or self.turn is not None
        return not busy and self.log.clean

    @property
    def needed_from(self) -> int:
        """The first number that a turn which runs or is to come needs."""
        return self._schedule.needed_from

    @contextmanager
    def held(self) -> Generator[None]:
        """Keeps it in memory over an await."""
        assert not self._left, _LEFT
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._on_unused()

    def leave(self) -> None:
        """It leaves memory: whoever needs it finds it anew."""
        self._left = True
        self._schedule.stop()

    def trim(self, through: int) -> None:
        """Drops all up to a number, unless something that is needed is among it."""
        log = self.log
        if log.oldest <= through < self.needed_from and not log.deleted:
            log.trim(through)

    # Viewers

    def attach(self, viewer: Viewer) -> None:
        """Adds a connection, and offers it the tool calls that nobody runs."""
        assert not self._left, _LEFT
        self._viewers.append(viewer)
        if self.turn is not None:
            self.turn.attached(viewer)
        else:
            self._schedule.start_next()

    def detach(self, viewer: Viewer) -> None:
        """Removes a connection; harmless when it is not there."""
        if viewer not in self._viewers:
            return
        self._viewers.remove(viewer)
        if self.turn is not None:
            self.turn.left(viewer)
        self._on_unused()

    def handles_changed(self, viewer: Viewer) -> None:
        """A connection handles other tools than before."""
        if self.turn is not None:
            self.turn.handles_changed(viewer)

    # Commands

    def remembers(self, command: Applicable, principal: Principal) -> bool:
        """Whether memory holds all that the command concerns; else `apply_older`."""
        if not isinstance(command, Interrupt):
            return True
        by = principal.name
        return self._receipts.knows(by, command.id) or (
            first_needed(self, command, by) is None
        )

    async def apply_older(
        self, command: Interrupt, principal: Principal, viewer: Viewer | None
    ) -> Applied:
        """Applies an interrupt of a turn that only the store holds.

        Raises:
            CommandError: It was refused; nothing changed.
            StoreError: The store can't be read.
        """
        first = first_needed(self, command, principal.name)
        older = () if first is None else await read_whole(self.log, first)
        return self.apply(command, principal, viewer, older)

    def apply(
        self,
        command: Applicable,
        principal: Principal,
        viewer: Viewer | None,
        older: Sequence[Entry] = (),
    ) -> Applied:
        """Applies a command, or says again what was said when it was applied.

        Args:
            command: The command.
            principal: Who sent it.
            viewer: The connection it came from, if it has the conversation open.
            older: What only the store held of what an interrupt concerns.

        Raises:
            CommandError: It was refused; nothing changed.
        """
        assert not self._left, _LEFT
        known = self.recall(command, principal)
        if known is not None:
            return known
        applied = self._apply(command, principal, viewer, older)
        self.keep(command, principal, applied.reply)
        return applied

    def recall(self, command: Command, principal: Principal) -> Applied | None:
        """Returns what came of a command that was applied before.

        Raises:
            CommandError: Its id was used for another content.
        """
        known = self._receipts.find(principal.name, command)
        return None if known is None else Applied(reply=known)

    def keep(self, command: Command, principal: Principal, reply: Reply) -> None:
        """Keeps the receipt of a command that was applied."""
        at = self._services.clock.wall()
        self.log.remember(self._receipts.add(principal.name, command, reply, at))

    def has_sent(self, by: str, send: str) -> bool:
        """Whether a principal's send is known to have arrived."""
        known = (by, send) in self.state.last_ids
        return known or self._receipts.knows(by, send)

    def tool_progress(self, call: str) -> None:
        """Extends an open call's deadline; ignored for any other."""
        if self.turn is not None:
            self.turn.tool_progress(call)

    def configure(self, id_: str, change: Config) -> Applied:
        """Changes the settings for the turns that start from here on.

        Raises:
            CommandError: No turn could run with them.
        """
        check_open(self._services, self.log)
        config = configured(self.state.config, change)
        check_change(config, self._services)
        if change.params is not UNSET:  # others may be of another model, or older
            check_params(config, self._services)
        self.state.config = config
        event = self.log.append(ConfigEvent, config=config)
        reply = Reply(re=id_, ok=True, outcome="configured", seq=event.seq)
        return Applied(reply=reply)

    def _apply(
        self,
        command: Applicable,
        principal: Principal,
        viewer: Viewer | None,
        older: Sequence[Entry],
    ) -> Applied:
        match command:
            case Send():
                return self._send(command, principal, viewer)
            case Interrupt():
                return interrupt(
                    self, command, principal, viewer, self._pre_cancelled, older
                )
            case ToolResult():
                return self._tool_result(command, principal)
            case Configure():
                return self.configure(command.id, command.config)
            case _:
                assert_never(command)

    def _send(
        self, command: Send, principal: Principal, viewer: Viewer | None
    ) -> Applied:
        check_open(self._services, self.log)
        check_send(command, self._services)
        check_config(self.state.config, self._services)
        check_queue(command.policy or "queue", self.state, self._services, self._space)
        running = self.turn
        waiting = self._message(command, principal, running)
        self.state.sent(principal.name, command.id)
        self._schedule.add(waiting, None if viewer is None else viewer.connection)
        flush_through = 0
        if running is not None and waiting.first:
            flush_through = stop_turn(
                self.log,
                running,
                reason="superseded",
                by=principal.name,
                keep=None,
                seen_seq=command.seen_seq,
                viewer=viewer,
            ).flush_through
        self._schedule.start_next()
        started = waiting not in self.state.queue
        outcome = "started" if started else "steering" if waiting.steers else "queued"
        reply = Reply(
            re=command.id,
            ok=True,
            outcome=outcome,
            seq=waiting.seq,
            turn=self.state.last_turn if started else None,
        )
        return Applied(reply=reply, flush_through=flush_through)

    def _message(
        self, command: Send, principal: Principal, running: RunningTurn | None
    ) -> Waiting:
        """Appends the message; says how it waits for its turn."""
        wall = self._services.clock.wall()
        taken_back = self._pre_cancelled.take(self.log.key, principal.name, command.id)
        policy = "queue" if running is None or taken_back else command.policy or "queue"
        steers = running.turn if running and policy == "steer" else 0
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
        return Waiting(
            seq=event.seq,
            id=command.id,
            by=principal.name,
            at=wall,
            first=policy == "interrupt",
            steers=steers,
            on_disconnect=command.on_disconnect,
            withdrawn="by_client" if taken_back else None,
        )

    def _tool_result(self, command: ToolResult, principal: Principal) -> Applied:
        check_output(command, self._services.limits.tool_output_bytes)
        status: Literal["ok", "error"] = "ok"
        output = command.output
        if command.error is not None:
            status = "error"
            output = command.error.message or SILENT_FAILURE
        outcome = "unknown"
        for turn in (self.turn, self._schedule.last):
            if turn is not None and outcome == "unknown":
                outcome = turn.tool_result(command.call, status, output, principal.name)
        reply = Reply(re=command.id, ok=True, outcome=outcome)
        return Applied(reply=reply)

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

    def store_works(self) -> None:
        """Goes on with what waited for the store, if somebody watches."""
        if self._viewers:
            self._schedule.start_next()

    def delete(self) -> None:
        """Stops the running turn and forgets those that wait."""
        self.state.queue.clear()
        if self.turn is not None:
            self.turn.stop("by_client", "server")
        self.log.delete()
