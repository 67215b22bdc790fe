"""The openai SDK's client as the relays use it, and the requests that they make."""

from contextlib import AbstractAsyncContextManager
from typing import Literal

from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient
from openai._response import AsyncAPIResponse
from openai.types.chat import ChatCompletionChunk

Http = Literal["httpx2", "aiohttp"]


def openai_client(upstream: str, http: Http) -> AsyncOpenAI:
    """Returns a client of the mock upstream at that port."""
    return AsyncOpenAI(
        base_url=f"http://127.0.0.1:{upstream}/v1",
        api_key="none",
        http_client=DefaultAioHttpClient() if http == "aiohttp" else None,
    )


async def stream_of(
    client: AsyncOpenAI, model: str
) -> AsyncStream[ChatCompletionChunk]:
    """Returns the SDK's own stream of typed chunks."""
    return await client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "go"}],
        stream=True,
        stream_options={"include_usage": True},
    )


def raw_of(
    client: AsyncOpenAI, model: str
) -> AbstractAsyncContextManager[AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]]:
    """Returns the same before the SDK has made chunks of it."""
    return client.chat.completions.with_streaming_response.create(
        model=model,
        messages=[{"role": "user", "content": "go"}],
        stream=True,
        stream_options={"include_usage": True},
    )
