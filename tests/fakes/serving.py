"""Serves TCP on loopback for as long as a context is open."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener


@asynccontextmanager
async def serving(
    handle: Callable[[SocketStream], Awaitable[None]],
) -> AsyncGenerator[int]:
    """Lets `handle` serve each connection; gives the port.

    At the end it listens no more before connections are cancelled: asyncio loses one
    that comes while `accept` is cancelled, and tells of an error in a callback.
    """
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(_accept, listener, handle)
        try:
            yield listener.extra(SocketAttribute.local_port)
        finally:
            with anyio.CancelScope(shield=True):
                await listener.aclose()
            tasks.cancel_scope.cancel()


async def _accept(
    listener: MultiListener[SocketStream],
    handle: Callable[[SocketStream], Awaitable[None]],
) -> None:
    try:
        await listener.serve(handle)
    except* anyio.ClosedResourceError:
        pass
