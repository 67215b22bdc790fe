"""One thread that runs calls for an asyncio loop, one after another.

Cheaper than a thread pool, and a connection that only this thread uses needs no
lock. The thread is a daemon: a process that ends without closing its store does
not hang, it loses what a kill would have taken.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 0.001
"""How long the event loop stands still for a call that is short, at most. Most take a
third of that; an outcome that has to come back through a busy loop waits for turns of
it, and each may take ten times as long."""


class _Call(Struct, gc=False):
    function: Callable[..., Any]
    args: tuple[Any, ...]
    future: asyncio.Future[Any] | None = None  # who is told of the outcome
    done: "Lock | None" = None  # held until there is an outcome
    result: Any = None
    error: BaseException | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class Worker:
    """Runs calls in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs a function in the thread; returns or raises what it does.

        When cancelled, the function still runs; only its outcome is dropped.
        """
        assert not kwargs, "a call takes positional arguments only"
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put(_Call(function, args, future))
        return await future

    async def call_shortly(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `call`, for what is done in well under `PATIENCE_SECONDS` as a rule.

        It blocks the loop for that long at most.
        """
        assert not kwargs, "a call takes positional arguments only"
        done = Lock()
        done.acquire()
        call = _Call(function, args, done=done)
        self._calls.put(call)
        if not done.acquire(timeout=PATIENCE_SECONDS):
            call.future = asyncio.get_running_loop().create_future()
            if not done.acquire(blocking=False):
                return await call.future
            call.future.cancel()  # there was one at this very moment
        return call.outcome()

    def post(self, function: Callable[P, None], *args: P.args, **_: P.kwargs) -> None:
        """Runs a function that raises nothing after all that was asked before."""
        self._calls.put(_Call(function, args))

    def stop(self) -> None:
        """Ends the thread after all that was asked before."""
        self._calls.put(None)

    def join(self) -> None:
        """Waits for the thread's end; blocks."""
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call.result = call.function(*call.args)
            except BaseException as error:  # noqa: BLE001 - whoever called gets it
                call.error = error
            if call.done is not None:
                call.done.release()
            if call.future is not None:
                with suppress(RuntimeError):  # the loop was closed: nobody waits
                    call.future.get_loop().call_soon_threadsafe(
                        _settle, call.future, call
                    )
            del call


def _settle(future: asyncio.Future[Any], call: _Call) -> None:
    if future.done():
        return
    if call.error is None:
        future.set_result(call.result)
    else:
        future.set_exception(call.error)
