"""The one task that reads: waits for the next frame, and for who the client is."""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial

import anyio
import anyio.lowlevel
import structlog

from protocol.codec import MAX_DEPTH, decode_command
from protocol.codes import CloseCode
from protocol.commands import ACK_COST, Ack, Hello
from protocol.content import ErrorBody, Limits
from protocol.frame_error import FrameError
from wsserver.auth.principal import ForbiddenError, UnauthorizedError
from wsserver.connections.dispatch import Dispatch
from wsserver.connections.errors import command_id, error_body
from wsserver.connections.lane import ControlLane
from wsserver.connections.rate import Recent, TokenBucket
from wsserver.connections.session import Session
from wsserver.connections.settings import ConnectionSettings
from wsserver.connections.transport import Transport
from wsserver.turns.errors import CommandError, refusal

FRAMES_AT_A_TIME = 32
"""After so many the other tasks get a turn, however much has come in."""

HELLO_BYTES = 16_384
"""The longest frame of one who has not said who they are: room for any token."""

_TURNED_AWAY = {
    "unsupported_protocol": CloseCode.NO_COMMON_VERSION,
    "unauthorized": CloseCode.UNAUTHORIZED,
    "forbidden": CloseCode.FORBIDDEN,
    "rate_limited": CloseCode.RATE,
}

log = structlog.get_logger(__name__)

End = Callable[[CloseCode, str], None]


class Reader:
    """Reads, decodes and limits what one client sends."""

    def __init__(
        self,
        transport: Transport,
        session: Session,
        dispatch: Dispatch,
        settings: ConnectionSettings,
        *,
        lane: ControlLane,
        refuse: Callable[[ErrorBody, str | None], None],
        heard: Callable[[], None],
        welcome: Callable[[], None],
        answer: Callable[[], None],
        end: End,
        failed: Callable[[BaseException], None],
        now: float,
    ) -> None:
        """Makes a reader.

        Args:
            transport: Where frames come from.
            session: Who the client is.
            dispatch: Takes the frames after `hello`.
            settings: Limits.
            lane: Holds the answers that the client has not read; nothing is read
                while it is full.
            refuse: Answers with an error.
            heard: Told of a `hello`.
            welcome: Told that it was believed.
            answer: Writes what is due, at once.
            end: Ends the connection.
            failed: Ends it for a defect of ours.
            now: Seconds on anyio's clock.
        """
        self._transport = transport
        self._session = session
        self._dispatch = dispatch
        self._lane = lane
        self._max_bytes = settings.limits.frame_bytes
        self._refuse = refuse
        self._heard = heard
        self._welcome = welcome
        self._answer = answer
        self._end = end
        self._failed = failed
        self._over = False
        self._frames = _bucket(settings.limits, now)
        self._refusals = TokenBucket(
            per_second=settings.refusals_per_second,
            burst=settings.refusals_burst,
            now=now,
        )
        self._bad = Recent(
            limit=settings.bad_frames, seconds=settings.bad_frames_seconds
        )

    async def run(self) -> None:
        """Reads until the connection ends.

        Raises:
            TransportClosed: The connection is gone.
        """
        try:
            self._session.check_version()
        except CommandError as error:
            self._turn_away(error)
            return
        at_once = partial(copy_context().run, self._take_at_once)
        while True:
            for _ in range(FRAMES_AT_A_TIME):
                if self._lane.full:
                    await self._lane.emptied()
                data = await self._transport.receive(at_once)
                if self._over:  # since a frame that was handled where it arrived
                    return
                hello = self._take(data, anyio.current_time())
                if hello is not None:
                    await self._greet(hello)
                if self._over:
                    return
                # Under load a turn of the loop is long: no answer waits for the next.
                self._answer()
            await anyio.lowlevel.checkpoint()

    def _take_at_once(self, data: str) -> bool:
        """Handles a frame where it arrived, unless it has to wait for something."""
        if self._over or self._lane.full or not self._session.greeted:
            return False
        try:
            self._take(data, anyio.current_time())
            if not self._over:
                self._answer()
        except BaseException as error:  # noqa: BLE001 - for the connection, not the loop
            self._over = True
            self._failed(error)
        return True

    def _take(self, data: str | bytes, now: float) -> Hello | None:
        """Handles a frame; returns it if it is the one that has to be waited for."""
        try:
            frame = decode_command(
                data, max_bytes=self._frame_bytes(), max_depth=MAX_DEPTH
            )
        except FrameError as error:
            if self._too_early(now, 1.0) is not None:
                self._bad_frame(error.body(), error.re, now)
            return None
        early_seconds = self._too_early(now, ACK_COST if type(frame) is Ack else 1.0)
        if early_seconds is None:
            return None
        if early_seconds and not isinstance(frame, Ack):
            self._refuse(_rate_limited(early_seconds).body, command_id(frame))
        elif self._session.greeted:
            self._dispatch.take(frame)
        elif isinstance(frame, Hello):
            return frame
        else:
            first = refusal("hello_required", "Say `hello` first.")
            self._bad_frame(first.body, command_id(frame), now)
        return None

    def _frame_bytes(self) -> int:
        if self._session.greeted:
            return self._max_bytes
        return min(self._max_bytes, HELLO_BYTES)

    def _too_early(self, now: float, cost: float) -> float | None:
        """Returns by how many seconds; None when the client goes on regardless."""
        own_seconds = 0.0 if self._frames is None else self._frames.take(now, cost)
        early_seconds = own_seconds or self._session.take(now, cost)
        if early_seconds and self._refusals.take(now, cost):
            self._give_up(CloseCode.RATE, "too many frames")
            return None
        return early_seconds

    def _bad_frame(self, body: ErrorBody, re: str | None, now: float) -> None:
        self._refuse(body, re)
        if self._bad.exceeded(now):
            self._give_up(CloseCode.BAD_FRAMES, "too many bad frames")

    async def _greet(self, frame: Hello) -> None:
        self._heard()
        try:
            await self._session.hello(frame)
        except UnauthorizedError as error:
            log.info("unauthorized", about=str(error))
            self._turn_away(error)
        except (CommandError, ForbiddenError) as error:
            self._turn_away(error)
        else:
            self._welcome()

    def _turn_away(self, error: Exception) -> None:
        body = error_body(error)
        self._refuse(body, None)
        self._give_up(_TURNED_AWAY[body.code], body.code)

    def _give_up(self, code: CloseCode, reason: str) -> None:
        self._over = True
        self._end(code, reason)


def _bucket(limits: Limits, now: float) -> TokenBucket | None:
    per_second, burst = limits.frames_per_second, limits.frames_burst
    if per_second is None:
        return None
    return TokenBucket(per_second=per_second, burst=burst or per_second, now=now)


def _rate_limited(seconds: float) -> CommandError:
    return refusal(
        "rate_limited",
        "Too many frames came; send this again later under the same id.",
        retry_after_ms=max(1, round(seconds * 1000)),
    )
