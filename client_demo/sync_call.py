"""Calls from a program that is not async which nobody leaves half done."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio.from_thread import BlockingPortal

_Result = TypeVar("_Result")


def call(portal: BlockingPortal, begin: Callable[[], Awaitable[_Result]]) -> _Result:
    """Runs something in the client's thread and waits for it.

    Ctrl-C cancels it, so that what it began is taken back; where that would lose
    something, as in reading, `portal.call` is right.

    Raises:
        Exception: What it raised.
    """
    running = portal.start_task_soon(begin)
    try:
        return running.result()
    except BaseException:
        running.cancel()
        raise
