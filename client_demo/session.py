"""The client's middle: between the machine's events and the application's objects.

It hands replies to who waits for them, events to their conversations and tool
requests to the tools. It never waits, so the reader never does; the driver
(`client_demo.driver`) moves the bytes.
"""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from client_demo.conversation import Conversation
from client_demo.errors import (
    ClientError,
    CommandError,
    ConversationNotFoundError,
    command_error,
    stop_error,
)
from client_demo.tool_runner import ToolRunner
from client_demo.tools import Fault, Output
from protocol.client.commands import AnyCommand
from protocol.client.events import (
    ClientEvent,
    Connected,
    Disconnected,
    DropConnection,
    Lost,
    Replied,
    Reset,
    Stopped,
)
from protocol.client.link import ClientStateError
from protocol.client.machine import ClientProtocol
from protocol.commands import Open, ToolResult
from protocol.content import ErrorBody
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ErrorFrame,
    Goaway,
    Reply,
    ToolRequest,
    Waiting,
)
from protocol.events import Event, LogEvent, ToolResultEvent
from protocol.frame_error import FrameError

Notice = (
    Connected
    | Disconnected
    | Stopped
    | DropConnection
    | Goaway
    | AuthExpiring
    | Waiting
    | ErrorFrame
    | Lost
)
"""What an application may want to show but need not act on."""

Notify = Callable[[Notice], None]
_Settle = Callable[[Reply | ClientError], None]
_NO_ERROR = ErrorBody(code="internal", message="no reason given", retryable=False)


class Session:
    """Everything of one client but its sockets.

    Attributes:
        machine: The protocol's client half.
        tools: The tools of all conversations.
        stopped: Why nothing works any more; None while it does.
    """

    def __init__(
        self,
        machine: ClientProtocol,
        task_group: TaskGroup,
        *,
        flush: Callable[[], None],
        notify: Notify,
    ) -> None:
        """Puts the parts together.

        Args:
            machine: The protocol's client half.
            task_group: Where tools run.
            flush: Makes the driver take what the machine has to say.
            notify: Told what an application may want to show.
        """
        self.machine = machine
        self.tools = ToolRunner(task_group, self._answer, self._progress)
        self.stopped: ClientError | None = None
        self._flush = flush
        self._notify = notify
        self._waiting: dict[str, _Settle] = {}
        self._conversations: dict[str, Conversation] = {}

    def submit(
        self, give: Callable[[ClientProtocol], AnyCommand], settle: _Settle
    ) -> AnyCommand:
        """Gives a command.

        Args:
            give: Calls one of the machine's commands.
            settle: Called once with the reply, whether ok or not, or with why
                none will come.

        Raises:
            ClientError: It can't be sent at all.
        """
        if self.stopped is not None:
            raise self.stopped
        try:
            command = give(self.machine)
        except FrameError as fault:
            raise command_error(fault.body()) from fault
        except ClientStateError:
            assert self.stopped is not None, "a machine stops with a `Stopped`"
            raise self.stopped from None
        self._waiting[command.id] = settle
        self._flush()
        return command

    async def command(self, give: Callable[[ClientProtocol], AnyCommand]) -> Reply:
        """Gives a command and waits for its reply, over as many connections as needed.

        Raises:
            ClientError: The server refused it, or the client has stopped.
        """
        settled = anyio.Event()
        results: list[Reply | ClientError] = []

        def settle(result: Reply | ClientError) -> None:
            results.append(result)
            settled.set()

        self.submit(give, settle)
        await settled.wait()
        result = results[0]
        if isinstance(result, ClientError):
            raise result
        return result

    def conversation(self, name: str, *, has_window: bool = False) -> Conversation:
        """Begins to fold a conversation that is about to be opened."""
        conversation = Conversation(name, has_window=has_window)
        self._conversations[name] = conversation
        return conversation

    def is_open(self, name: str) -> bool:
        """Whether a conversation is folded here."""
        return name in self._conversations

    def ack(self, name: str, seq: int | None = None) -> None:
        """Opens the window of a conversation; None for all that has arrived."""
        self.machine.ack(name, seq)
        self._flush()

    def forget(self, name: str, error: ClientError) -> None:
        """Ends a conversation here."""
        self.tools.let_go(name)
        conversation = self._conversations.pop(name, None)
        if conversation is not None:
            conversation.fail(error)

    def deleted(self, name: str, error: ClientError) -> None:
        """Ends a conversation whose calls have ended too."""
        self.forget(name, error)
        self.tools.stop(name)

    def abandon(self, name: str) -> None:
        """Takes back an open that nobody waits for any more."""
        self.forget(name, command_error(_NO_ERROR))
        if self.stopped is None:
            self.submit(lambda machine: machine.close(name), _ignore)

    def handle(self, event: ClientEvent) -> None:
        """Puts one event of the machine where it belongs."""
        match event:
            case Event():
                self._apply(event)
            case Replied():
                self._replied(event)
            case ToolRequest():
                self.tools.start(event)
            case CaughtUp():
                if event.conversation in self._conversations:
                    self._conversations[event.conversation].replayed()
            case Reset():
                name = event.cursor.conversation
                if event.reason == "epoch_changed":
                    self.tools.stop(name)
                if name in self._conversations:
                    self._conversations[name].reset(event)
            case _:
                self._tell(event)

    def _tell(self, notice: Notice) -> None:
        match notice:
            case Stopped():
                self.stop(stop_error(notice.code, notice.error))
            case Disconnected():
                for conversation in self._conversations.values():
                    conversation.offline()
            case Lost():
                self._lost(notice.conversation, command_error(notice.error))
            case _:
                pass
        self._notify(notice)

    def _lost(self, name: str, error: CommandError) -> None:
        if isinstance(error, ConversationNotFoundError):
            self.deleted(name, error)
        else:
            self.forget(name, error)

    def stop(self, error: ClientError) -> None:
        """Ends everything that waits, and takes nothing more."""
        self.stopped = error
        waiting, self._waiting = self._waiting, {}
        for settle in waiting.values():
            settle(error)
        for name in [*self._conversations]:
            self.forget(name, error)

    def _apply(self, event: LogEvent) -> None:
        conversation = self._conversations.get(event.conversation)
        if conversation is not None:
            conversation.apply(event)
            if conversation.acks_itself:
                self.ack(event.conversation)
        if isinstance(event, ToolResultEvent):
            self.tools.settled(event)

    def _replied(self, replied: Replied) -> None:
        reply = replied.reply
        if isinstance(replied.command, Open) and reply.ok:
            conversation = self._conversations.get(replied.command.conversation or "")
            if conversation is not None:
                conversation.opened(reply)
        settle = self._waiting.pop(reply.re, None)
        if settle is not None:
            settle(reply if reply.ok else command_error(reply.error or _NO_ERROR))

    def _progress(self, request: ToolRequest) -> None:
        self.machine.tool_progress(request.conversation, request.call)
        self._flush()

    def _answer(self, request: ToolRequest, outcome: Output | Fault) -> None:
        """Sends a tool's result; why the server took none is one too."""

        def settle(result: Reply | ClientError) -> None:
            if isinstance(result, ConversationNotFoundError):
                return
            if isinstance(result, CommandError):
                what = "output" if isinstance(outcome, Output) else "error"
                why = f"the tool's {what} was refused: {result.message}"
                self._give(request, Fault(message=why), _ignore)

        self._give(request, outcome, settle)

    def _give(
        self, request: ToolRequest, outcome: Output | Fault, settle: _Settle
    ) -> None:
        try:
            self.submit(lambda machine: _result(machine, request, outcome), settle)
        except ClientError as refused:
            if self.stopped is None:
                settle(refused)


def _ignore(result: Reply | ClientError) -> None:
    del result


def _result(
    machine: ClientProtocol, request: ToolRequest, outcome: Output | Fault
) -> ToolResult:
    match outcome:
        case Output():
            return machine.tool_result(
                request.conversation, request.call, output=outcome.output
            )
        case Fault():
            return machine.tool_result(
                request.conversation, request.call, error=outcome.message
            )
