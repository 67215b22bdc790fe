"""Commands from when they are given until they are settled.

When they go out `protocol.client.outbox` says; here is what a reply, a lost
connection or a deletion makes of them. The machine they belong to is
`protocol.client.machine`.
"""

from collections.abc import Callable

from protocol.client.events import Replied
from protocol.client.outbox import Outbox
from protocol.client.output import Output
from protocol.client.replies import done, meant, refused
from protocol.client.tools import ToolLedger
from protocol.commands import Close, Command, Delete, Refresh, ToolResult
from protocol.content import ErrorBody
from protocol.control import Reply


class Deliveries:
    """The commands of one client that have no reply yet."""

    def __init__(
        self,
        output: Output,
        tools: ToolLedger,
        *,
        is_wanted: Callable[[str], bool],
        deleted: Callable[[str], None],
    ) -> None:
        """Begins without any, and without a connection.

        Args:
            output: Where frames and replies go.
            tools: Which calls results are for.
            is_wanted: Whether a conversation is open, or to be.
            deleted: Told of a conversation whose `delete` was replied to.
        """
        self._output = output
        self._tools = tools
        self._is_wanted = is_wanted
        self._deleted = deleted
        self._outbox = Outbox()
        self._overtaken: list[Command] = []
        self._is_online = False

    def hold(self, command: Command, frame: bytes) -> None:
        """Keeps a command until it is settled; `send_due` gives it when it may go."""
        self._outbox.hold(command, frame)
        match command:
            case Close():
                self._tools.let_go(command.conversation)
            case ToolResult():
                self._tools.answer(command.conversation, command.call, frame)
            case _:
                pass
        if self._is_online:
            self.send_due()
        elif isinstance(command, Close):
            self._settle(done(command, "closed"))

    def deletes(self, conversation: str) -> bool:
        """Says whether a `delete` of a conversation is held."""
        return self._outbox.deletes(conversation)

    def greeted(self) -> None:
        """A `hello` went out: credentials that are older than its own are outdated."""
        self._overtaken = [held for held in self._outbox if isinstance(held, Refresh)]

    def welcomed(self) -> None:
        """There is a connection; `go_out_anew` follows once the opens are written."""
        self._is_online = True
        for command in self._overtaken:
            self._settle(done(command, "refreshed"))

    def go_out_anew(self) -> None:
        """All that is held goes out on a new connection."""
        self._outbox.new_connection()
        self.send_due()

    def offline(self) -> None:
        """The connection is gone, and what it closed is closed."""
        self._is_online = False
        for command in self._outbox:
            if isinstance(command, Close):
                self._settle(done(command, "closed"))

    def next_timer(self) -> float | None:
        """When `send_due` has something by time alone; None for never."""
        if not self._is_online:
            return None
        return self._outbox.next_timer(self._output.pace.room_at())

    def advance(self, now: float) -> None:
        """Time has passed."""
        self._outbox.advance(now)
        self._output.pace.advance(now)

    def send_due(self) -> None:
        """Sends the commands that may go now."""
        pace = self._output.pace
        while self._is_online:
            due = self._outbox.due(has_room=pace.has_room())
            if due is None:
                return
            command, frame = due
            if isinstance(command, Close) and self._is_wanted(command.conversation):
                # What was opened again meanwhile would end with it.
                self._settle(done(command, "closed"))
                continue
            error = self._output.write_encoded(frame)
            if error is not None:
                self._settle(refused(command, error))

    def replied(self, reply: Reply, now: float) -> None:
        """The server replied to a command."""
        match reply.error:
            case ErrorBody(code="draining"):
                pass  # taken on the next connection, under this id
            case ErrorBody(code="rate_limited", retry_after_ms=wait_ms):
                wait_seconds = None if wait_ms is None else wait_ms / 1000
                self._outbox.too_fast(reply.re, wait_seconds, now)
            case _:
                self._settle(reply)
                self.send_due()

    def over(self, conversation: str, error: ErrorBody) -> None:
        """Ends what is held for a conversation that somebody else deleted."""
        self._tools.forget(conversation)
        for command in self._outbox.into(conversation):
            self._settle(refused(command, error))
        self.send_due()

    def _settle(self, reply: Reply) -> None:
        command = self._outbox.settle(reply.re)
        if command is None:
            return
        if isinstance(command, ToolResult):
            self._result_replied(command, reply)
        said = meant(command, reply)
        self._output.emit(Replied(command=command, reply=said))
        if isinstance(command, Delete):
            if said.ok:  # else its calls go on
                self._tools.forget(command.conversation)
            self._deleted(command.conversation)

    def _result_replied(self, command: ToolResult, reply: Reply) -> None:
        conversation, call = command.conversation, command.call
        if reply.ok:
            is_open = self._is_wanted(conversation)
            self._tools.settle(conversation, call, is_open=is_open)
        else:
            self._tools.answer(conversation, call, None)
