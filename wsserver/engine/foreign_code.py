"""What a boundary around anybody's code stops: a provider's, a tool's, an SDK's.

Not only an `Exception`: `sys.exit` is called in tools that were made of programs, and
libraries in Rust panic with what derives from none.
"""

from typing import cast


def stops(error: BaseException, cancelled: type[BaseException]) -> bool:
    """Returns whether the boundary stops it: no task and no process is to end by it.

    Args:
        error: What was raised.
        cancelled: What tells a task that it is cancelled, which passes.
    """
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(stops(each, cancelled) for each in group.exceptions)
    return not isinstance(error, KeyboardInterrupt | GeneratorExit | cancelled)
