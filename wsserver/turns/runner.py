"""Gives one turn's machine a provider, a clock and its task.

One task drives the model calls and ends with the turn; an alarm watches the deadlines.
The runner is told synchronously of what happens elsewhere (an interrupt, a result, a
viewer that leaves) and performs the machine's actions at once.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

import anyio
import structlog

from wsserver.engine.actions import (
    Action,
    CallModel,
    CloseModel,
    HostAction,
)
from wsserver.engine.deadlines import CLOSE_SECONDS
from wsserver.engine.ending import DEFECT
from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    UpstreamError,
)
from wsserver.engine.turn import Turn
from wsserver.foreign_code import stops
from wsserver.log.store import StoreError
from wsserver.turns.alarms import Alarm
from wsserver.turns.services import Services, Target

_PROVIDER_FAILED = "The server failed while it called the model."
_CALLING = ("connecting", "waiting_first_token", "streaming")

log = structlog.get_logger(__name__)


class Host(Protocol):
    """What a runner needs of its conversation."""

    def perform(self, action: HostAction) -> None:
        """Appends or delivers what the machine decided."""
        ...

    async def request(self) -> tuple[ModelRequest, int]:
        """Folds the prompt; returns the request and its size in bytes."""
        ...


class TurnRunner:
    """Runs one turn."""

    __slots__ = (
        "_alarm", "_call", "_call_due", "_changed", "_defect", "_host", "_looks_at",
        "_machine", "_now", "_phase", "_services", "_target",
    )  # fmt: skip

    def __init__(
        self,
        machine: Turn,
        target: Target,
        host: Host,
        services: Services,
    ) -> None:
        self._machine = machine
        self._target = target
        self._host = host
        self._services = services
        self._now = services.clock.now
        self._call_due = True
        self._call = anyio.CancelScope()  # around the model call under way
        self._changed: anyio.Event | None = None  # set when the phase has changed
        self._defect: Exception | None = None
        self._phase = machine.phase
        self._alarm = Alarm(services.alarms, self._look)
        self._looks_at = inf

    def act(self, decide: Callable[[], list[Action] | None]) -> None:
        """Performs what is decided because of something elsewhere.

        Whoever is behind that does not fail for a defect of this turn: `run` does.
        """
        if self._phase == "ended":
            decide()  # nothing can come of it, and there is no turn to pay for a defect
            return
        try:
            self._perform(decide() or [])
            self._look_in_time()
        except Exception as defect:  # noqa: BLE001 - `run` has the boundary
            self._defect = defect
            self._wake()
            # What looks for a call that does not close may be what failed.
            self._alarm.set(anyio.current_time() + CLOSE_SECONDS)
        if self._over:
            self._call.cancel()  # its last event has come, but it may not be closed

    async def run(self) -> None:
        """Runs the turn to its end.

        Raises:
            Exception: A defect; nobody can say whether its `done` is in the log.
        """
        try:
            self._look_in_time()
            while not self._over:
                await self._step()
            self._raise_defect()
        except Exception:
            # The boundary of a turn: of all turns only this one pays for a defect.
            if self._machine.phase == "ended":
                raise
            log.exception("turn_defective")
            self._give_up()
        finally:
            self._alarm.cancel()

    def let_go(self) -> None:
        """Forgets the host, once the turn has ended: nothing is left to perform."""
        del self._host

    @property
    def _over(self) -> bool:
        return self._machine.phase == "ended" or self._defect is not None

    def _raise_defect(self) -> None:
        if self._defect is not None:
            raise self._defect

    async def _step(self) -> None:
        if self._call_due:
            self._call_due = False
            with anyio.CancelScope() as self._call:
                if self._machine.phase == "connecting":
                    await self._call_model()
        if self._machine.phase == "stopping" and self._defect is None:
            self._perform(self._machine.closed(self._now()))
        elif not (self._over or self._call_due):
            self._changed = anyio.Event()
            await self._changed.wait()
            self._changed = None

    async def _call_model(self) -> None:
        machine = self._machine
        try:
            request, size = await self._host.request()
            if machine.phase != "connecting":
                return
            machine.called(size, self._now())
            async with self._target.provider.stream(request) as stream:
                machine.connected(self._now())
                await stream.pump(self._feed)
            self._feed([Finished(reason="incomplete")])
        except UpstreamError as error:
            self._refused(error.failure)
        except StoreError as error:
            log.warning("history_unavailable", error=str(error))
            self._fail("store_unavailable", "The log can't be read at the moment.")
        except BaseException as error:
            # The one boundary around providers, which may be anybody's code.
            if not stops(error):
                raise
            if self._defect is None:
                log.exception("provider_failed")
                self._fail("internal", _PROVIDER_FAILED)

    def _feed(self, events: Sequence[ModelEvent]) -> None:
        """Gives the machine what one read held; after its end, nothing."""
        try:
            now = self._now()
            self._perform(self._machine.feed(events, now))
            if events and isinstance(events[-1], Finished):
                self._finish(events[-1], now)
        except Exception as defect:
            self._defect = defect  # it is none of the provider's, who is told too
            raise

    def _finish(self, end: Finished, now: float) -> None:
        clock = self._services.clock
        self._perform(self._machine.finished(end, now, clock.wall(), clock.jitter()))
        if end.failure is not None and self._machine.phase == "retry_wait":
            self._count_retry(end.failure)

    def _refused(self, failure: Failure) -> None:
        clock = self._services.clock
        log.info(
            "upstream_refused",
            model=self._target.model,
            address=self._target.address,
            code=failure.code,
            said=failure.upstream_code,
        )
        if self._machine.calling:
            self._perform(self._machine.refused(failure, self._now(), clock.jitter()))
            if self._machine.phase == "retry_wait":
                self._count_retry(failure)

    def _fail(self, code: str, message: str) -> None:
        """Ends the turn, unless the model call that failed had come to its end."""
        if self._machine.phase in _CALLING and not self._call_due:
            failure = Failure(code=code, message=message, retryable=True)
            self._perform(self._machine.fail(failure, self._now()))

    def _give_up(self) -> None:
        """Ends the turn, whose model call is closed."""
        self._perform(self._machine.fail(DEFECT, self._now()))
        if self._machine.phase == "stopping":
            self._perform(self._machine.closed(self._now()))

    def _count_retry(self, failure: Failure) -> None:
        self._services.metrics.upstream_retry(self._target.model, failure.code)

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case CallModel():
                    self._call_due = True
                case CloseModel():
                    self._call.cancel()
                case _:
                    self._host.perform(action)
        if self._machine.phase != self._phase:
            self._phase = self._machine.phase
            self._wake()
            self._look_in_time()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _look_in_time(self) -> None:
        """Sees to it that the machine is asked when something is due."""
        at = self._machine.deadline()
        if at < self._looks_at:
            self._looks_at = at
            in_seconds = at - self._now()
            self._alarm.set(anyio.current_time() + in_seconds)

    def _look(self) -> None:
        self._looks_at = inf
        self.act(lambda: self._machine.time(self._now()))
