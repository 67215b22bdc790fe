"""Server-sent events by FastAPI over the SDK's stream.

Run as `python -m tests.bench.relays.fastapi_sse UPSTREAM_PORT`; prints its port. The
client posts `{"model": ...}` to `/v1/chat/completions`, and gets each chunk's text as
an event, then `data: [DONE]`.
"""

# pyright: basic, reportMissingImports=false

import json  # noqa: TID251 - as one would write it
import sys
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from tests.bench.relays.openai_client import openai_client, stream_of
from tests.bench.relays.uvicorn_port import serve

app = FastAPI()
client = openai_client(sys.argv[1], "httpx2")


@app.post("/v1/chat/completions")
async def chat(asked: dict[str, Any]) -> StreamingResponse:
    async def events() -> AsyncGenerator[str]:
        async for chunk in await stream_of(client, asked["model"]):
            if chunk.choices and chunk.choices[0].delta.content:
                text = json.dumps({"text": chunk.choices[0].delta.content})
                yield f"data: {text}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    serve(app)
