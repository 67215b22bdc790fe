"""The client's half of the protocol as a machine without I/O.

Bytes, commands and the time go in; frames to send, events for the application
and the next deadline come out. It outlives its connections: on a new one it
opens again what was open, from the last number it had, and sends again what
was not replied to. A driver moves the bytes and sleeps; the application folds
the events (`protocol.fold`).

The driver's loop: while `phase` is `connecting`, dial and call `connected`;
feed `received`; call `disconnected` when the transport is gone or could not be
opened; call `timer` when `next_timer` has passed. After each of these, and
after commands, send `data_to_send` and handle `events`.
"""

from collections.abc import Callable
from typing import assert_never

from protocol.backoff import Backoff
from protocol.client.commands import AnyCommand, Commands
from protocol.client.deliveries import Deliveries
from protocol.client.events import (
    ClientEvent,
    Connected,
    Cursor,
    Disconnected,
    DropConnection,
    Stopped,
)
from protocol.client.link import ClientStateError, Link, Phase
from protocol.client.output import Output
from protocol.client.subscriptions import Subscriptions
from protocol.client.tools import ToolLedger
from protocol.codec import UnknownFrame, decode_server_frame, encode
from protocol.commands import (
    Ack,
    Close,
    Delete,
    Hello,
    Open,
    Ping,
    Refresh,
    ToolProgress,
)
from protocol.content import ClientInfo
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ControlFrame,
    ErrorFrame,
    Goaway,
    Heartbeat,
    Pong,
    Reply,
    ToolRequest,
    Waiting,
    Welcome,
)
from protocol.events import DoneEvent, Event, LogEvent
from protocol.frame_error import FrameError
from protocol.ids import VERSION


class ClientProtocol(Commands):
    """One client of one server, over as many connections as it takes.

    Attributes:
        token: Credentials for the next `hello`; None for none.
        welcome: What the server said last about itself; None before that.
    """

    def __init__(
        self,
        *,
        prefix: str,
        random: Callable[[], float],
        token: str | None = None,
        client: ClientInfo | None = None,
        backoff: Backoff | None = None,
        welcome_timeout_seconds: float = 10.0,
    ) -> None:
        """Starts in the phase `connecting`.

        Args:
            prefix: Begins every id; unique among the principal's clients.
            random: Gives numbers evenly spread over `[0, 1)`, for the jitter.
            token: Credentials for `hello`.
            client: Who says hello, for the server's log.
            backoff: Waits between attempts; None takes the usual ones.
            welcome_timeout_seconds: How long `hello` may stay unanswered.
        """
        super().__init__(prefix=prefix)
        self.token = token
        self.welcome: Welcome | None = None
        self._client = client
        self._link = Link(
            backoff=backoff or Backoff(random=random),
            welcome_timeout_seconds=welcome_timeout_seconds,
        )
        self._output = Output()
        self._tools = ToolLedger()
        self._deliveries = Deliveries(
            self._output,
            self._tools,
            is_wanted=self._is_wanted,
            deleted=self._deleted,
        )
        self._subscriptions = Subscriptions(
            self._output,
            new_id=self._new_id,
            new_epoch=self._tools.forget,
            over=self._deliveries.over,
            deletes=self._deliveries.deletes,
            backoff=Backoff(random=random),
        )
        self._last_fault: ErrorFrame | None = None

    @property
    def phase(self) -> Phase:
        """Where the connection stands; in `connecting` the driver dials."""
        return self._link.phase

    def cursor(self, conversation: str) -> Cursor | None:
        """The position in a conversation; None where it is not open (yet)."""
        return self._subscriptions.cursor(conversation)

    def ack(self, conversation: str, seq: int | None = None) -> None:
        """Opens the window of `window_bytes`; void while there is no connection.

        Args:
            conversation: Whose events were taken.
            seq: Up to which; None for all that were emitted.
        """
        cursor = self.cursor(conversation)
        if cursor is not None and self.phase == "online":
            taken = cursor.last if seq is None else seq
            self._output.write(Ack(conversation=conversation, seq=taken))

    def tool_progress(self, conversation: str, call: str) -> None:
        """Extends a call's deadline; void while there is no connection."""
        if self.phase == "online":
            self._output.write(ToolProgress(conversation=conversation, call=call))

    def connected(self, now: float) -> None:
        """The transport is open: says hello.

        Raises:
            ClientStateError: The phase is not `connecting`.
        """
        self._link.connected(now)
        self._output.frame_bytes = None
        self._last_fault = None
        self._deliveries.greeted()
        self._output.write(
            Hello(protocol=VERSION, token=self.token, client=self._client)
        )

    def received(self, data: str | bytes, now: float) -> None:
        """Takes one text message in.

        What is no frame of the protocol comes back as an `ErrorFrame` event.

        Raises:
            ClientStateError: There is no connection.
        """
        if self.phase not in {"greeting", "online"}:
            raise ClientStateError(f"nothing can arrive while {self.phase}.")
        self._link.heard(now)
        self._deliveries.advance(now)
        try:
            frame = decode_server_frame(data)
        except FrameError as fault:
            self._output.emit(_as_frame(fault))
            return
        if isinstance(frame, Event):
            self._take(frame)
        elif not isinstance(frame, UnknownFrame):
            self._control(frame, now)
        elif frame.skip is not None:
            self._take(frame.skip)

    def disconnected(self, code: int | None, now: float) -> None:
        """The transport is gone, or could not be opened.

        Args:
            code: The close code; None where no close frame came.
            now: When.

        Raises:
            ClientStateError: There was none, nor an attempt.
        """
        retry_in_seconds = self._link.lost(code, now)
        self._output.take_frames()
        self._subscriptions.offline()
        self._deliveries.offline()
        if retry_in_seconds is not None:
            self._output.emit(
                Disconnected(code=code, retry_in_seconds=retry_in_seconds)
            )
        else:
            assert code is not None, "without a close code there is a next attempt"
            self._output.emit(Stopped(code=code, error=self._last_fault))

    def next_timer(self) -> float | None:
        """When `timer` must be called at the latest; None while nothing runs."""
        times = (
            self._link.next_timer(),
            self._subscriptions.next_timer(),
            self._deliveries.next_timer(),
        )
        return min((at for at in times if at is not None), default=None)

    def timer(self, now: float) -> None:
        """Does what is due by `now`; may be called at any time."""
        for due in self._link.due(now):
            match due:
                case "connect":
                    pass
                case "ping":
                    self._output.write(Ping())
                case "silent" | "no_welcome":
                    self._output.emit(DropConnection(why=due))
                case _:
                    assert_never(due)
        self._deliveries.advance(now)
        self._subscriptions.timer(now)
        self._deliveries.send_due()

    def data_to_send(self) -> list[bytes]:
        """Takes the text messages that are to be sent, in order."""
        return self._output.take_frames()

    def events(self) -> list[ClientEvent]:
        """Takes what the application is to be told, in order."""
        return self._output.take_events()

    def _submit(self, command: AnyCommand) -> AnyCommand:
        if self.phase == "stopped":
            raise ClientStateError("the client has stopped; make a new one.")
        frame = encode(command)
        if isinstance(command, Open):
            self._subscriptions.want(command)
            return command
        match command:
            case Close() | Delete():
                self._subscriptions.drop(command.conversation)
            case Refresh():
                self.token = command.token
            case _:
                pass
        self._deliveries.hold(command, frame)
        return command

    def _is_wanted(self, conversation: str) -> bool:
        return self._subscriptions.wanted(conversation)

    def _deleted(self, conversation: str) -> None:
        self._subscriptions.deleted(conversation)

    def _take(self, event: LogEvent) -> None:
        if self._subscriptions.take(event):
            self._output.emit(event)
            if isinstance(event, DoneEvent):
                self._tools.forget(event.conversation, event.turn)

    def _control(self, frame: ControlFrame, now: float) -> None:
        match frame:
            case Welcome():
                if self.phase == "greeting":
                    self._welcomed(frame, now)
            case Reply():
                self._replied(frame, now)
            case ToolRequest():
                self._asked(frame)
            case Heartbeat():
                self._subscriptions.compare(frame.heads)
            case Pong():
                pass
            case _:
                self._notice(frame)

    def _notice(
        self, frame: CaughtUp | Goaway | ErrorFrame | Waiting | AuthExpiring
    ) -> None:
        match frame:
            case CaughtUp():
                if not self._subscriptions.caught_up(frame):
                    return
            case Goaway():
                self._link.going_away(frame.reconnect_after_ms / 1000)
            case ErrorFrame(gone=str() as conversation):
                self._subscriptions.gone(conversation, frame)
                return
            case ErrorFrame():
                self._last_fault = frame
            case Waiting() | AuthExpiring():
                pass
            case _:
                assert_never(frame)
        self._output.emit(frame)

    def _welcomed(self, welcome: Welcome, now: float) -> None:
        self._link.welcomed(now, welcome.heartbeat_ms / 1000)
        resumed = self.welcome is not None
        self.welcome = welcome
        self._output.frame_bytes = welcome.limits.frame_bytes
        self._output.pace.announced(welcome.limits, now)
        self._output.emit(Connected(welcome=welcome, resumed=resumed))
        self._deliveries.welcomed()
        self._subscriptions.online()
        self._deliveries.go_out_anew()

    def _replied(self, reply: Reply, now: float) -> None:
        if not self._subscriptions.verdict(reply, now):
            self._deliveries.replied(reply, now)

    def _asked(self, request: ToolRequest) -> None:
        if not self._subscriptions.attached(request.conversation):
            return  # it was let go, or opened anew, meanwhile: who has it is asked again
        if self._tools.ask(request.conversation, request.call, request.turn):
            self._output.emit(request)
            return
        answer = self._tools.result(request.conversation, request.call)
        if answer is not None:
            self._output.write_encoded(answer)


def _as_frame(fault: FrameError) -> ErrorFrame:
    return ErrorFrame(
        code=fault.code, message=fault.message, retryable=False, param=fault.param
    )
