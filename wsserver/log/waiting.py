"""Waiting until the store has what a log has appended, or the log is gone."""

from collections.abc import Callable

import anyio

from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import StoreError


async def until_stored(log: ConversationLog, seq: int) -> None:
    """Waits until the store has everything up to `seq`, or the log is gone."""
    await _until(log, lambda: log.stored >= seq)


async def until_kept(log: ConversationLog) -> None:
    """Waits until the store knows of the log, or it is gone.

    Raises:
        StoreError: The store does not take it at the moment.
    """
    await _until(log, lambda: log.kept or log.stalled)
    if not (log.kept or log.deleted):
        raise StoreError(f"{log.key} is not stored yet")


async def _until(log: ConversationLog, reached: Callable[[], bool]) -> None:
    if log.dirty and not reached():  # else the commit under way has it
        log.hurry()
    while not (reached() or log.deleted):
        moved = anyio.Event()
        log.subscribe(moved.set)
        try:
            await moved.wait()
        finally:
            log.unsubscribe(moved.set)
