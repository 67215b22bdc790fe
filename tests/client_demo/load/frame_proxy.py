"""A server that breaks promises: between client and server, frame by frame."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from protocol.ids import SUBPROTOCOL

Spoil = Callable[[bytes], list[bytes]]


async def _pass(
    source: ClientConnection | ServerConnection,
    sink: ClientConnection | ServerConnection,
    spoil: Spoil,
) -> None:
    try:
        while True:
            for frame in spoil(await source.recv(decode=False)):
                await sink.send(frame, text=True)
    except ConnectionClosed:
        await sink.close()


@asynccontextmanager
async def spoilt(url: str, spoil: Spoil) -> AsyncGenerator[str]:
    """Yields the URL of a server whose frames go through `spoil`."""

    async def handle(client: ServerConnection) -> None:
        async with (
            connect(url, subprotocols=[SUBPROTOCOL], ping_interval=None) as server,  # pyright: ignore[reportArgumentType]
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_pass, client, server, lambda frame: [frame])
            await _pass(server, client, spoil)
            tasks.cancel_scope.cancel()

    async with serve(
        handle,
        "127.0.0.1",
        0,
        subprotocols=[SUBPROTOCOL],
        ping_interval=None,  # pyright: ignore[reportArgumentType]
    ) as made:
        port = made.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/chat"
