"""Task groups whose one error leaves as itself.

anyio wraps what a task group's block raises in an `ExceptionGroup`; whoever
writes `except TooLargeError` around a block of this client means the error.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def task_group() -> AsyncGenerator[TaskGroup]:
    """Opens a task group that is cancelled when its block ends.

    Raises:
        Exception: What the block or a task raised; a group where they raised
            several.
    """
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error = group.exceptions[0]
        if all(other is error for other in group.exceptions):
            raise error from error.__cause__
        raise
