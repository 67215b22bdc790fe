"""One client connection: a reader, a writer and an alarm, and how they end.

They share no queue. The reader, a task, hands commands to the conversations, these
append to their logs, the logs wake the writer, and the writer reads them through
the cursors of the open views. Whoever finds a reason to end the connection names
its close code; the first one counts.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import structlog

from protocol.codec import encode
from protocol.codes import NO_CLOSE_FRAME, CloseCode
from protocol.content import ErrorBody
from protocol.control import AuthExpiring, Goaway, Heartbeat, Welcome
from protocol.ids import VERSION
from wsserver.auth.principal import Authority
from wsserver.connections.deadlines import Deadlines, Pulse
from wsserver.connections.dispatch import Dispatch
from wsserver.connections.errors import error_frame, fail, log_unforeseen
from wsserver.connections.fetcher import Fetcher
from wsserver.connections.lane import ControlLane
from wsserver.connections.metrics import ConnectionMetrics
from wsserver.connections.quotas import Quotas
from wsserver.connections.reader import Reader
from wsserver.connections.session import Session
from wsserver.connections.settings import ConnectionSettings
from wsserver.connections.transport import Handshake, Transport, TransportClosed
from wsserver.connections.views import Views
from wsserver.connections.writer import Writer
from wsserver.turns.alarms import Alarm, Alarms
from wsserver.turns.directory import Directory

log = structlog.get_logger(__name__)

CLOSE_SECONDS = 3.0


class Connection:
    """One client's connection, from its first frame to its last.

    Call `run` once, in a task of its own; all else may be called from any task
    of the same event loop.
    """

    def __init__(
        self,
        *,
        connection: str,
        transport: Transport,
        handshake: Handshake,
        authority: Authority,
        directory: Directory,
        quotas: Quotas,
        settings: ConnectionSettings,
        metrics: ConnectionMetrics,
        alarms: Alarms,
        wall: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        """Makes a connection; nothing happens before `run`.

        Args:
            connection: Its id, as `welcome` and the log say it.
            transport: Carries its frames.
            handshake: What is known of the peer.
            authority: Says who the client is and what it may do.
            directory: Where conversations are.
            quotas: What connections of one principal share.
            settings: Limits and times.
            metrics: Counts.
            alarms: Tells when something is due.
            wall: Returns seconds since the epoch.
            new_id: Returns an id for a new conversation, hard to guess.
        """
        self._transport = transport
        self._handshake = handshake
        self._settings = settings
        self._metrics = metrics
        self._wall = wall
        self._tasks = anyio.create_task_group()
        self._running = False
        self._closers: list[anyio.Event] = []  # set when it has ended
        self._code: int | None = None
        self._reason = ""
        self._gone = False
        self._by_peer = False
        self._goaway: bytes | None = None
        self._alarm = Alarm(alarms, self._ring)
        self._deadlines = Deadlines(settings, anyio.current_time())
        self._session = Session(connection, handshake, authority, quotas, wall)
        self._writer = Writer(
            transport,
            lane=ControlLane(
                max_frames=settings.unread_frames,
                max_answer_bytes=settings.unread_bytes,
                overfull=self._overfull,
            ),
            high_water_bytes=settings.high_water_bytes,
            start_soon=self._start_soon,
            metrics=metrics,
        )
        self._views = Views(
            self._session,
            self._writer,
            Fetcher(self._tasks),
            metrics,
            alarms,
            settings.limits.conversations,
        )
        dispatch = Dispatch(
            self._session,
            directory=directory,
            views=self._views,
            writer=self._writer,
            tasks=self._tasks,
            max_waiting=settings.waiting_commands,
            refuse=self._refuse,
            wall=wall,
            new_id=new_id,
            refreshed=self._refreshed,
        )
        self._reader = Reader(
            transport,
            self._session,
            dispatch,
            settings,
            lane=self._writer.lane,
            refuse=self._refuse,
            heard=self._deadlines.heard,
            welcome=self._welcome,
            answer=self._writer.take_turn,
            end=self._end,
            failed=self._failed,
            now=anyio.current_time(),
        )

    async def run(self) -> None:
        """Serves the client until the connection has ended, and ends it.

        Cancelling it drops the connection.
        """
        self._metrics.connection_opened()
        connection = self._session.connection
        with structlog.contextvars.bound_contextvars(connection=connection):
            try:
                await self._serve()
            finally:
                self._writer.gates.clear()
                try:
                    self._views.clear()
                finally:
                    self._writer.drop_views()
                    self._session.leave()
                    await self._leave()

    def goaway(self, *, deadline_ms: int, reconnect_after_ms: int, reason: str) -> None:
        """Tells the client that the server goes away, once it was welcomed."""
        frame = Goaway(
            deadline_ms=deadline_ms,
            reconnect_after_ms=reconnect_after_ms,
            reason=reason,
        )
        self._goaway = encode(frame)
        if self._session.greeted:
            self._writer.push(self._goaway)

    def lags(self) -> list[int]:
        """Returns of each open conversation how many numbers were not sent yet."""
        return self._views.lags()

    def check_credentials(self) -> None:
        """Ends it if its credentials were taken back."""
        if not self._session.stands:
            self._end(CloseCode.UNAUTHORIZED, "unauthorized")

    async def close(self, code: int, reason: str) -> None:
        """Sends what is due and fits, closes, and returns when it has ended."""
        self._writer.write_rest()
        self._end(code, reason)
        if self._running:
            finished = anyio.Event()
            self._closers.append(finished)
            await finished.wait()

    # Tasks

    async def _serve(self) -> None:
        self._running = True
        try:
            async with self._tasks:
                if self._code is None:
                    await self._converse()
        except ExceptionGroup as group:
            # A defect of ours; of all connections only this one pays for it.
            for error in group.exceptions:
                log_unforeseen(error)
            self._code, self._reason = CloseCode.INTERNAL, "internal error"

    async def _converse(self) -> None:
        self._writer.begin()
        self._look()
        try:
            await self._until_gone(self._reader.run)
        finally:
            self._writer.end()
            self._alarm.cancel()

    def _start_soon(self, task: Callable[[], Awaitable[None]]) -> None:
        self._tasks.start_soon(self._until_gone, task)

    async def _until_gone(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except TransportClosed as closed:
            if self._code is None:
                self._gone = True
                self._by_peer = closed.by_peer
                self._end(closed.code or NO_CLOSE_FRAME, closed.reason)

    def _ring(self) -> None:
        """Looks, for the alarm, which is not to fail for a defect of one connection."""
        try:
            self._look()
        except BaseException as error:  # noqa: BLE001 - for the connection
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._start_soon(partial(fail, error))

    def _look(self) -> None:
        """Does what is due; called when something may be."""
        due = self._deadlines.check(anyio.current_time(), self._pulse())
        if due.close is not None:
            self._end(due.close, due.close.name.lower().replace("_", " "))
            return
        if due.expiring:
            in_ms = round(1000 * (self._session.expires_in or 0))
            self._writer.push(encode(AuthExpiring(in_ms=in_ms)))
        if due.heartbeat:
            t = round(1000 * self._wall())
            self._writer.push(encode(Heartbeat(t=t, heads=self._views.heads())))
        self._alarm.set(due.check_at)

    # What they call

    def _pulse(self) -> Pulse:
        transport = self._transport
        buffered = transport.buffered_bytes()
        return Pulse(
            received_bytes=transport.received_bytes,
            drained_bytes=transport.written_bytes - buffered,
            buffered=buffered > 0,
            due=self._writer.due,
            expires_in=self._session.expires_in,
        )

    def _welcome(self) -> None:
        settings = self._settings
        self._deadlines.greeted(anyio.current_time())
        welcome = Welcome(
            protocol=VERSION,
            connection=self._session.connection,
            heartbeat_ms=round(1000 * settings.heartbeat_seconds),
            server=settings.server,
            models=list(settings.models),
            limits=settings.limits,
            features=list(settings.features),
        )
        self._writer.push(encode(welcome))
        if self._goaway is not None:
            self._writer.push(self._goaway)
        self._look()

    def _refreshed(self) -> None:
        self._deadlines.refreshed()
        if self._views.reconsider():
            self._look()
        else:
            self._end(CloseCode.FORBIDDEN, "forbidden")

    def _refuse(self, body: ErrorBody, re: str | None) -> None:
        self._metrics.frame_error(body.code)
        self._writer.answer(error_frame(body, re))

    def _overfull(self) -> None:
        self._end(CloseCode.SLOW, "notices are not read")

    # The end

    def _end(self, code: int, reason: str) -> None:
        if self._code is None:
            self._code, self._reason = code, reason
            if self._running:
                self._tasks.cancel_scope.cancel()

    async def _leave(self) -> None:
        """Says goodbye, in bounded time, and writes down how it ended."""
        code = NO_CLOSE_FRAME if self._code is None else int(self._code)
        try:
            if self._code is None:  # cancelled from outside
                self._transport.abort()
            elif not self._gone:
                await self._say_goodbye(code)
        finally:
            self._metrics.connection_closed(code)
            self._running = False
            for finished in self._closers:
                finished.set()
            log.info(
                "connection_closed",
                code=code,
                reason=self._reason,
                by="peer" if self._by_peer else "server",
                peer=self._handshake.peer,
                client=self._session.client,
            )

    async def _say_goodbye(self, code: int) -> None:
        transport = self._transport
        if code not in (CloseCode.SLOW, CloseCode.DEAD):
            transport.write(self._writer.lane.take())
        with anyio.move_on_after(CLOSE_SECONDS, shield=True) as bound:
            await transport.close(code, self._reason)
        if bound.cancelled_caught:
            transport.abort()
