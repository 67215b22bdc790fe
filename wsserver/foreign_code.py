"""What a boundary around anybody's code stops: a provider's, a tool's, an SDK's.

Not only an `Exception`: `sys.exit` is called in tools that were made of programs, and
libraries in Rust panic with what derives from none. And code that cancels itself: passed
on, that would end a task that nobody cancelled, and with it all tasks of the server.
"""

import math
from typing import cast

import anyio


def stops(error: BaseException) -> bool:
    """Returns whether the boundary stops it: no task and no process is to end by it.

    A cancellation passes where a scope around the boundary asked for it.

    Args:
        error: What was raised, in the task that runs.
    """
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(map(stops, group.exceptions))
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return anyio.current_effective_deadline() != -math.inf
    return not isinstance(error, KeyboardInterrupt | GeneratorExit)
