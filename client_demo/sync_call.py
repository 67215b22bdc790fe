"""Calls from a program that is not async which nobody leaves half done."""

from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, wait
from typing import TypeVar

from anyio import CancelScope, Event
from anyio.from_thread import BlockingPortal

_Result = TypeVar("_Result")
_Handle = TypeVar("_Handle")
_TAKEN_BACK_SECONDS = 2.0


def call(
    portal: BlockingPortal,
    begin: Callable[[], Awaitable[_Result]],
    undo: Callable[[_Result], Awaitable[object]],
    handle: Callable[[_Result], _Handle],
) -> _Handle:
    """Runs something in the client's thread and waits for it.

    Ctrl-C, whenever it comes until this has returned, takes back what was begun and
    waits for that, so that the same can be begun at once: it is cancelled, or undone
    where it had come to its end and nobody got the result. Another Ctrl-C meanwhile ends
    the wait alone. Where taking back would lose something, as in reading, `portal.call`
    is right.

    Args:
        portal: To the client's thread.
        begin: What is run; cancelled, it leaves nothing behind.
        undo: Takes back what `begin` has returned.
        handle: Makes of that what the caller gets.

    Raises:
        Exception: What `begin` raised.
    """
    results: list[_Result] = []
    scope: CancelScope | None = None
    given_up = nothing_left = False
    over = Event()

    async def run() -> _Handle:
        nonlocal scope, nothing_left
        try:
            with CancelScope() as scope:
                if not given_up:
                    results.append(await begin())
                    return handle(results[0])
            raise CancelledError
        finally:
            nothing_left = not results
            over.set()

    async def give_up() -> None:
        nonlocal given_up
        given_up = True
        if scope is None:
            return  # It has not begun, and will not.
        scope.cancel()
        await over.wait()
        for result in results:
            await undo(result)

    try:
        return portal.start_task_soon(run).result()
    except BaseException:
        if not nothing_left:
            wait([portal.start_task_soon(give_up)], _TAKEN_BACK_SECONDS)
        raise
