"""The floor: a websockets server that only sends, with no upstream at all.

Run as `python -m tests.bench.relays.floor 0`; prints its port. The client sends
`{"model": "bench:tokens=200,rate=30"}` and gets as many frames of a delta's size.
All streams share one timer.
"""

import asyncio
import contextlib
import json
import sys

from websockets.asyncio.server import ServerConnection, serve

FRAME = (
    '{"type":"delta","conversation":"conversation-1","seq":1000,"turn":2,'
    '"text":" token"}'
)


async def _handler(socket: ServerConnection) -> None:
    loop = asyncio.get_running_loop()
    async for data in socket:
        model = json.loads(data)["model"]
        options = dict(part.split("=") for part in model.partition(":")[2].split(","))
        rate = float(options["rate"])
        next_at = loop.time()
        for _ in range(int(options["tokens"])):
            await socket.send(FRAME)
            if rate:
                next_at += 1 / rate
                await asyncio.sleep(next_at - loop.time())
        await socket.send('{"done":true}')


async def _main() -> None:
    async with serve(
        _handler, "127.0.0.1", 0, backlog=4096, compression=None
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_main())
