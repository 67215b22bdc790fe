"""One thread that runs calls for an asyncio loop, one after another.

Cheaper than a thread pool, and a connection that only this thread uses needs no
lock. The thread is a daemon: a process that ends without closing its store does
not hang, it loses what a kill would have taken.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

P = ParamSpec("P")
T = TypeVar("T")


class _Call(Struct, gc=False):
    function: Callable[..., Any]
    args: tuple[Any, ...]
    future: asyncio.Future[Any] | None


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

    def post(self, function: Callable[P, None], *args: P.args, **_: P.kwargs) -> None:
        """Runs a function that raises nothing after all that was asked before."""
        self._calls.put(_Call(function, args, None))

    def stop(self) -> None:
        """Ends the thread after all that was asked before."""
        self._calls.put(None)

    def join(self) -> None:
        """Waits for the thread's end; blocks."""
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.future is None:
                call.function(*call.args)
                continue
            try:
                result, error = call.function(*call.args), None
            except BaseException as caught:  # noqa: BLE001 - whoever called gets it
                result, error = None, caught
            with suppress(RuntimeError):  # the loop was closed: nobody waits
                call.future.get_loop().call_soon_threadsafe(
                    _settle, call.future, result, error
                )
            del call, result, error


def _settle(
    future: asyncio.Future[Any], result: object, error: BaseException | None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
