"""The frugal way: the SDK makes the request, its lines are read raw, orjson does JSON.

Run as `python -m tests.bench.relays.raw_lines UPSTREAM_PORT httpx2|aiohttp`; prints its
port. What is said is as in `plain_sdk`.
"""

import sys
from typing import cast

import orjson
from websockets.asyncio.server import ServerConnection

from tests.bench.loop import run
from tests.bench.relays.listening import listen
from tests.bench.relays.openai_client import Http, openai_client, raw_of


async def _main(upstream: str, http: Http) -> None:
    client = openai_client(upstream, http)

    async def answer(socket: ServerConnection, model: str) -> None:
        async with raw_of(client, model) as response:
            async for line in response.iter_lines():
                if not line.startswith("data: {"):
                    continue
                choices = orjson.loads(line[6:])["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    await socket.send(orjson.dumps({"text": text}), text=True)
        await socket.send('{"done":true}')

    async def handler(socket: ServerConnection) -> None:
        async for data in socket:
            await answer(socket, orjson.loads(data)["model"])

    await listen(handler)


if __name__ == "__main__":
    run(_main(sys.argv[1], cast(Http, sys.argv[2])))
