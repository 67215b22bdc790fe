"""The plain way: a handler that loops over the SDK's stream.

Run as `python -m tests.bench.relays.plain_sdk UPSTREAM_PORT`; prints its port. The
client sends `{"model": ...}` and gets each chunk's text as JSON, then `{"done": ...}`.
"""

import asyncio
import contextlib
import json
import sys

from openai import AsyncOpenAI, DefaultAioHttpClient
from websockets.asyncio.server import ServerConnection, serve


async def _main(upstream: str) -> None:
    client = AsyncOpenAI(
        base_url=f"http://127.0.0.1:{upstream}/v1",
        api_key="none",
        http_client=DefaultAioHttpClient(),
    )

    async def handler(socket: ServerConnection) -> None:
        async for data in socket:
            stream = await client.chat.completions.create(
                model=json.loads(data)["model"],
                messages=[{"role": "user", "content": "go"}],
                stream=True,
                stream_options={"include_usage": True},
            )
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    text = chunk.choices[0].delta.content
                    await socket.send(json.dumps({"text": text}))
            await socket.send(json.dumps({"done": True}))

    async with serve(handler, "127.0.0.1", 0, backlog=4096, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_main(sys.argv[1]))
