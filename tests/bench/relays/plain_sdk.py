"""The plain way: a handler that loops over the SDK's stream.

Run as `python -m tests.bench.relays.plain_sdk UPSTREAM_PORT httpx2|aiohttp`; prints its
port. The client sends `{"model": ...}` and gets each chunk's text as JSON, then
`{"done": true}`.
"""

import json  # noqa: TID251 - as one would write it
import sys
from typing import cast

from websockets.asyncio.server import ServerConnection

from tests.bench.loop import run
from tests.bench.relays.listening import listen
from tests.bench.relays.openai_client import Http, openai_client, stream_of


async def _main(upstream: str, http: Http) -> None:
    client = openai_client(upstream, http)

    async def handler(socket: ServerConnection) -> None:
        async for data in socket:
            model = json.loads(data)["model"]
            async for chunk in await stream_of(client, model):
                if chunk.choices and chunk.choices[0].delta.content:
                    text = chunk.choices[0].delta.content
                    await socket.send(json.dumps({"text": text}))
            await socket.send(json.dumps({"done": True}))

    await listen(handler)


if __name__ == "__main__":
    run(_main(sys.argv[1], cast(Http, sys.argv[2])))
