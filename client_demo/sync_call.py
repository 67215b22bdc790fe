"""Calls from a program that is not async which nobody leaves half done."""

from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from threading import Event
from typing import TypeVar

from anyio import CancelScope
from anyio.from_thread import BlockingPortal

_Result = TypeVar("_Result")
_TAKEN_BACK_SECONDS = 2.0


def call(portal: BlockingPortal, begin: Callable[[], Awaitable[_Result]]) -> _Result:
    """Runs something in the client's thread and waits for it.

    Ctrl-C, whenever it comes, cancels it and waits until what it began is taken back, so
    that the same can be begun at once; where that would lose something, as in reading,
    `portal.call` is right.

    Raises:
        Exception: What it raised.
    """
    over = Event()
    scope: CancelScope | None = None
    given_up = False

    async def run() -> _Result:
        nonlocal scope
        try:
            with CancelScope() as scope:
                if not given_up:
                    return await begin()
            raise CancelledError
        finally:
            over.set()

    def give_up() -> None:
        nonlocal given_up
        given_up = True
        if scope is None:
            over.set()
        else:
            scope.cancel()

    try:
        return portal.start_task_soon(run).result()
    except BaseException:
        if not over.is_set():
            portal.start_task_soon(give_up)
            over.wait(_TAKEN_BACK_SECONDS)
        raise
