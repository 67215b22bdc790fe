"""A callback from the event loop, whichever runs the test."""

import asyncio
from collections.abc import Callable

import trio
from sniffio import current_async_library


def call_soon(callback: Callable[[], None]) -> None:
    """Calls back once, after what the event loop is doing now."""
    if current_async_library() == "trio":
        trio.lowlevel.current_trio_token().run_sync_soon(callback)
    else:
        asyncio.get_running_loop().call_soon(callback)
