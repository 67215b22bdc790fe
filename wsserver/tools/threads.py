"""Runs what blocks in threads of its own, so many at a time.

Not in anyio's worker threads: a thread can't be stopped, and the process would wait
for those at its end. These end with the process, whatever they do. One that goes on
after its caller was cancelled keeps its place, so that a function that hangs can't
fill the process with threads.
"""

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

T = TypeVar("T")


class Threads:
    """At most so many threads."""

    def __init__(self, most: int) -> None:
        self._places = anyio.CapacityLimiter(most)

    @property
    def busy(self) -> int:
        """How many functions are running."""
        return self._places.statistics().borrowed_tokens

    async def run(self, function: Callable[[], T]) -> T:
        """Runs a function in a thread, once there is a place; returns what it does.

        When this is cancelled the function goes on, and nobody gets its result.

        Raises:
            RuntimeError: The system gives no thread.
            BaseException: What the function raises.
        """
        done = anyio.Event()
        place = object()
        outcome: list[T] = []
        failure: list[BaseException] = []
        loop = anyio.lowlevel.current_token()
        context = contextvars.copy_context()

        def end() -> None:
            self._places.release_on_behalf_of(place)
            done.set()

        def work() -> None:
            try:
                outcome.append(context.run(function))
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                failure.append(error)
            with suppress(anyio.RunFinishedError):  # then nobody waits any more
                anyio.from_thread.run_sync(end, token=loop)

        await self._places.acquire_on_behalf_of(place)
        try:
            threading.Thread(target=work, daemon=True, name="tool").start()
        except RuntimeError:  # the system gives no more threads
            self._places.release_on_behalf_of(place)
            raise
        await done.wait()
        if failure:
            raise failure.pop()
        return outcome.pop()


def in_loop(function: Callable[[], Any]) -> Callable[[], None]:
    """Returns what calls a function in this event loop, for use in a thread."""
    loop = anyio.lowlevel.current_token()

    def call() -> None:
        with suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(function, token=loop)

    return call
