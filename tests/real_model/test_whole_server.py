"""The whole server in front of a real model server."""

from collections import defaultdict
from pathlib import Path

import aiohttp
import anyio
import pytest

from tests.fakes.server import server
from tests.fakes.wire import Copy, wire
from wsserver.providers.local import LocalServer, LocalSettings

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(120)]

STORY = "Tell me a long story about a river."


async def busy(model: LocalServer) -> int:
    """Returns how many of the model's slots generate at the moment."""
    url = model.base_url.removesuffix("/v1") + "/slots"
    headers = {"Authorization": f"Bearer {model.api_key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url) as response,
    ):
        return sum(slot["is_processing"] for slot in await response.json())


async def test_stream_interrupt_and_resume(
    local_settings: LocalSettings, tmp_path: Path
) -> None:
    async with LocalServer(local_settings) as model:
        env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": model.api_key}
        async with server("--store", "sqlite", folder=tmp_path, env=env) as running:
            copies: dict[str, Copy] = defaultdict(Copy)
            params = {"temperature": 0, "max_tokens": 400}
            config = {"model": model.name, "params": params}
            async with wire(running.url, copies) as client:
                await client.open("c", config=config)
                copy = copies["c"]
                reply = await client.command("send", conversation="c", content=STORY)
                first = reply["turn"]
                await client.until(lambda: len(copy.texts[first]) > 40, 60)
                assert await busy(model) == 1

                # Interrupted in the middle: the model really stops.
                reply = await client.command(
                    "interrupt", conversation="c", seen_seq=copy.last
                )
                assert reply["outcome"] == "interrupted"
                with anyio.fail_after(2):
                    while await busy(model):
                        await anyio.sleep(0.01)
                done = await client.done("c", first)
                assert done["status"] == "interrupted"
                assert done["timing"]["stop_ms"] < 1000
                kept = len(copy.texts[first])
                print(f"stopped: {done['timing']}, {kept} characters kept")

                # A second answer, cut off by the network in its middle.
                reply = await client.command(
                    "send", conversation="c", content="And then?"
                )
                second = reply["turn"]
                await client.until(lambda: len(copy.texts[second]) > 20, 60)
            have = copy.texts[second]
            async with wire(running.url, copies) as client:
                reply = await client.open("c")
                assert reply["outcome"] == "replay"
                done = await client.done("c", second, 60)
                assert copy.texts[second].startswith(have)
                copy.prove()
                whole = len(copy.texts[second])
                print(f"resumed: {done['timing']}, {len(have)} of {whole} characters")
