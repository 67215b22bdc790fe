"""python-socketio over the SDK's stream.

Run as `python -m tests.bench.relays.socketio_sdk UPSTREAM_PORT`; prints its port. The
client emits `ask` with a model, and gets `text` events and then `done`.
"""

# pyright: basic, reportMissingImports=false

import sys
from typing import Any

import socketio

from tests.bench.relays.openai_client import openai_client, stream_of
from tests.bench.relays.uvicorn_port import serve

server: Any = socketio.AsyncServer(async_mode="asgi")
client = openai_client(sys.argv[1], "httpx2")


@server.event
async def ask(sid: str, model: str) -> None:
    async for chunk in await stream_of(client, model):
        if chunk.choices and chunk.choices[0].delta.content:
            await server.emit("text", chunk.choices[0].delta.content, to=sid)
    await server.emit("done", to=sid)


if __name__ == "__main__":
    serve(socketio.ASGIApp(server))
