"""Keeps the server's background tasks running, also over a defect in one of them."""

from collections.abc import Awaitable, Callable

import anyio
import structlog

from wsserver.foreign_code import stops

AGAIN_FIRST_SECONDS = 0.1
AGAIN_MOST_SECONDS = 10.0
"""Before a task runs again that a defect has ended: ever longer, up to this."""

STEADY_SECONDS = 60.0
"""A task that ran so long is begun again as if it had never failed."""

log = structlog.get_logger(__name__)


async def kept(task: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs a task, and again whenever a defect ends it, until it returns.

    Args:
        task: What the log calls it.
        run: The task; what it has to do has to be found by whoever runs it again.
    """
    delay = AGAIN_FIRST_SECONDS
    while True:
        began = anyio.current_time()
        try:
            await run()
        except BaseException as defect:
            # The boundary of a background task: the server goes on without it meanwhile.
            if not stops(defect):
                raise
            if anyio.current_time() - began >= STEADY_SECONDS:
                delay = AGAIN_FIRST_SECONDS
            log.exception("task_defective", task=task, again_in_seconds=delay)
        else:
            return
        await anyio.sleep(delay)
        delay = min(2 * delay, AGAIN_MOST_SECONDS)
