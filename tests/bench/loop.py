"""Runs a coroutine on uvloop where it is installed, as the server does."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, or cancels it on SIGTERM: it has processes to end."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_until_told(main))
    else:
        uvloop.run(_until_told(main))


async def _until_told(main: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(main)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task
