"""Calls from a program that is not async which nobody leaves half done."""

from collections.abc import Awaitable, Callable
from threading import Event
from typing import TypeVar

from anyio.from_thread import BlockingPortal

_Result = TypeVar("_Result")
_TAKEN_BACK_SECONDS = 2.0


def call(portal: BlockingPortal, begin: Callable[[], Awaitable[_Result]]) -> _Result:
    """Runs something in the client's thread and waits for it.

    Ctrl-C cancels it and waits until what it began is taken back, so that the same can
    be begun at once; where that would lose something, as in reading, `portal.call` is
    right.

    Raises:
        Exception: What it raised.
    """
    over = Event()

    async def run() -> _Result:
        try:
            return await begin()
        finally:
            over.set()

    running = portal.start_task_soon(run)
    try:
        return running.result()
    except BaseException:
        if running.cancel():
            over.wait(_TAKEN_BACK_SECONDS)
        raise
