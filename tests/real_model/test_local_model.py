"""The supervisor over a real model: it streams, stops, dies and comes back."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import orjson
import pytest

from wsserver.providers.local import LocalModelError, LocalServer, LocalSettings

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(120)]

STORY = [{"role": "user", "content": "Tell me a long story about a river."}]


@asynccontextmanager
async def client(server: LocalServer) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {server.api_key}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield session


@asynccontextmanager
async def completion(
    session: aiohttp.ClientSession,
    server: LocalServer,
    headers: dict[str, str] | None = None,
    **members: Any,
) -> AsyncIterator[aiohttp.ClientResponse]:
    body = {
        "model": server.name,
        "messages": STORY,
        "stream": True,
        "temperature": 0,
        **members,
    }
    url = f"{server.base_url}/chat/completions"
    async with session.post(url, json=body, headers=headers) as response:
        yield response


async def texts(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            for choice in orjson.loads(line[6:])["choices"]:
                if text := choice["delta"].get("content"):
                    yield text


async def busy_slots(session: aiohttp.ClientSession, server: LocalServer) -> int:
    url = server.base_url.removesuffix("/v1") + "/slots"
    async with session.get(url) as response:
        return sum(slot["is_processing"] for slot in await response.json())


async def test_it_streams_an_answer(local_settings: LocalSettings):
    async with LocalServer(local_settings) as server, client(server) as session:
        assert server.serving
        async with completion(session, server, max_tokens=16) as response:
            assert response.status == 200
            pieces = [text async for text in texts(response)]
    assert 8 <= len(pieces) <= 16
    assert " river" in "".join(pieces)


async def test_a_disconnect_frees_the_slot(local_settings: LocalSettings):
    async with LocalServer(local_settings) as server, client(server) as session:
        async with completion(session, server, max_tokens=1500) as response:
            await anext(texts(response))
            assert await busy_slots(session, server) == 1
            response.close()
        with anyio.fail_after(1):
            while await busy_slots(session, server):
                await anyio.lowlevel.checkpoint()


async def test_without_the_key_there_is_no_answer(local_settings: LocalSettings):
    async with LocalServer(local_settings) as server, aiohttp.ClientSession() as other:
        async with completion(other, server) as response:
            assert response.status == 401
        arguments = await anyio.Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert b"local_child" in arguments
        assert server.api_key.encode() not in arguments


async def test_a_child_that_dies_is_started_again(local_settings: LocalSettings):
    async with LocalServer(local_settings) as server, client(server) as session:
        before = server.base_url
        async with completion(session, server, max_tokens=1500) as response:
            answer = texts(response)
            await anext(answer)
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(aiohttp.ClientPayloadError):
                async for _ in answer:
                    pass
        with anyio.fail_after(30):
            while not (server.restarts and server.serving):
                await anyio.lowlevel.checkpoint()
        assert server.base_url == before
        async with completion(session, server, max_tokens=2) as response:
            assert [text async for text in texts(response)]


async def test_leaving_ends_the_child_in_the_middle_of_an_answer(
    local_settings: LocalSettings,
):
    async with aiohttp.ClientSession() as session:
        async with LocalServer(local_settings) as server:
            headers = {"Authorization": f"Bearer {server.api_key}"}
            stack = AsyncExitStack()
            response = await stack.enter_async_context(
                completion(session, server, headers, max_tokens=1500)
            )
            await anext(texts(response))
        async with stack:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
    assert not await anyio.Path(f"/proc/{server.pid}").exists()


@pytest.mark.usefixtures("local_settings")
async def test_what_is_not_a_model_is_said_to_be_none(tmp_path: Path):
    weights = tmp_path / "model.gguf"
    weights.write_bytes(b"not a model")
    settings = LocalSettings(weights=weights)
    with pytest.raises(LocalModelError, match="expected 'GGUF'"):
        async with LocalServer(settings):
            pass
