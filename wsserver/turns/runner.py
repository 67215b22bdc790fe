"""Gives one turn's machine a provider, a clock and its two tasks.

One task drives the model calls, one watches the deadlines; both end with the
turn. The runner is told synchronously of what happens elsewhere (an interrupt, a
result, a viewer that leaves) and performs the machine's actions at once.
"""

from collections.abc import Sequence
from typing import Protocol

import anyio
import structlog

from wsserver.engine.actions import Action, CallModel, CloseModel
from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    UpstreamError,
)
from wsserver.engine.turn import Turn
from wsserver.log.store import StoreError
from wsserver.turns.services import Services, Target

log = structlog.get_logger(__name__)


class Host(Protocol):
    """What a runner needs of its conversation."""

    def perform(self, actions: list[Action]) -> None:
        """Appends and delivers what the machine decided, but calls no model."""
        ...

    async def request(self, turn: int, request_id: str) -> tuple[ModelRequest, int]:
        """Folds the prompt; returns the request and its size in bytes."""
        ...


class TurnRunner:
    """Runs one turn.

    Attributes:
        machine: Decides; ask it only between awaits.
    """

    def __init__(
        self,
        machine: Turn,
        turn: int,
        request_id: str,
        target: Target,
        host: Host,
        services: Services,
    ) -> None:
        self.machine = machine
        self._turn = turn
        self._request_id = request_id
        self._target = target
        self._host = host
        self._services = services
        self._call_due = True
        self._changed = anyio.Event()
        self._moved = anyio.Event()
        self._sleeping_until = 0.0
        self._phase = machine.phase
        self._call = anyio.CancelScope()

    def act(self, actions: list[Action]) -> None:
        """Performs what the machine decided."""
        for action in actions:
            if isinstance(action, CallModel):
                self._call_due = True
            elif isinstance(action, CloseModel):
                self._call.cancel()
        self._host.perform(actions)
        if self.machine.phase != self._phase:
            self._phase = self.machine.phase
            self._changed.set()
        if self.machine.deadline() < self._sleeping_until:
            self._moved.set()

    async def run(self) -> None:
        """Runs the turn to its end."""
        with structlog.contextvars.bound_contextvars(request=self._request_id):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_time)
                while self.machine.phase != "ended":
                    await self._step()
                tasks.cancel_scope.cancel()

    async def _step(self) -> None:
        if self._call_due:
            self._call_due = False
            self._call = anyio.CancelScope()
            if self.machine.phase != "stopping":
                with self._call:
                    await self._call_model()
        if self.machine.phase == "stopping":
            self.act(self.machine.closed(self._services.clock.now()))
        elif self.machine.phase != "ended" and not self._call_due:
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _call_model(self) -> None:
        clock = self._services.clock
        try:
            request, size = await self._host.request(self._turn, self._request_id)
            self.machine.called(size, clock.now())
            async with self._target.provider.stream(request) as stream:
                self.machine.connected(clock.now())
                async for events in stream:
                    self._feed(events)
            if self.machine.phase in ("waiting_first_token", "streaming"):
                self._feed([Finished(reason="incomplete")])
        except UpstreamError as error:
            failure = error.failure
            log.info("upstream_refused", code=failure.code, said=failure.upstream_code)
            self.act(self.machine.refused(failure, clock.now(), clock.jitter()))
            if self.machine.phase == "retry_wait":
                self._services.metrics.upstream_retry(self._target.model, failure.code)
        except StoreError:
            self._fail("store_unavailable", "The log can't be read at the moment.")
        except Exception:
            # The one boundary around providers, which may be anybody's code.
            log.exception("provider_failed")
            self._fail("internal", "The server failed while it called the model.")

    def _feed(self, events: Sequence[ModelEvent]) -> None:
        clock = self._services.clock
        machine = self.machine
        actions = machine.feed(events, clock.now(), clock.wall(), clock.jitter())
        if not actions and machine.phase == self._phase:
            return
        if machine.phase == self._phase and len(actions) == 1:
            self._host.perform(actions)
            return
        self.act(actions)

    def _fail(self, code: str, message: str) -> None:
        failure = Failure(code=code, message=message, retryable=True)
        self.act(self.machine.fail(failure, self._services.clock.now()))

    async def _watch_time(self) -> None:
        clock = self._services.clock
        while True:
            self._moved = anyio.Event()
            self._sleeping_until = self.machine.deadline()
            with anyio.move_on_after(self._sleeping_until - clock.now()):
                await self._moved.wait()
            self.act(self.machine.time(clock.now()))
