"""Serves a websockets handler until the input ends, and says where."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from websockets.asyncio.server import ServerConnection, serve


async def listen(handler: Callable[[ServerConnection], Awaitable[None]]) -> None:
    """Listens on a free port of loopback and prints it."""
    async with serve(handler, "127.0.0.1", 0, backlog=4096, compression=None) as server:
        sys.stdout.write(f"{next(iter(server.sockets)).getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
