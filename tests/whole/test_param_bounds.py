"""What clients may not set never arrives upstream: real processes, sockets, upstreams."""

from pathlib import Path

import anyio

from tests.fakes.replies import streamed, text_events
from tests.fakes.server import server
from tests.fakes.upstream import FakeUpstream
from tests.fakes.wire import Wire, wire

MODELS = """\
openai_base_url = "{url}"
default_model = "free"
{general}

[models.free]
base_url = "{url}"
params_allowed = ["*"]
params_max = {{}}

[models.named]
base_url = "{url}"
params = {{ service_tier = "flex" }}
{named}
"""
GENERAL = """\
params_allowed = ["temperature", "max_tokens"]
params_max = { max_completion_tokens = 100 }
"""
NAMED = """\
params_allowed = ["max_tokens", "n"]
params_max = { max_tokens = 10, n = 1 }
fallback = ["unnamed"]
"""
GREEDY = {"service_tier": "priority", "n": 8, "max_tokens": 9999, "store": True}


async def begin(client: Wire, name: str, model: str) -> None:
    opened = await client.open(name, config={"model": model, "params": GREEDY})
    assert opened["outcome"] == "created"


async def turn(client: Wire, name: str) -> str:
    reply = await client.command("send", conversation=name, content="go")
    assert reply["outcome"] == "started"
    return (await client.done(name, reply["turn"]))["status"]


async def test_what_clients_may_not_set_never_arrives(tmp_path: Path) -> None:
    config = anyio.Path(tmp_path / "wsserver.toml")
    flags = ("--store", "sqlite", "--config", str(config))
    async with FakeUpstream(strict=True) as upstream:
        upstream.script(streamed(text_events("word")))
        url = upstream.base_url
        await config.write_text(MODELS.format(url=url, general="", named=""))
        async with server(*flags, folder=tmp_path) as running:
            async with wire(running.url) as client:
                await begin(client, "named", "named")
                await begin(client, "unnamed", "gpt")
            assert await running.terminate() == 0

        await config.write_text(MODELS.format(url=url, general=GENERAL, named=NAMED))
        async with (
            server(*flags, folder=tmp_path) as running,
            wire(running.url) as client,
        ):
            # What is stored from before the bounds is held to them, and works.
            for name in ("named", "unnamed"):
                await client.open(name)
                assert await turn(client, name) == "completed"
            named, unnamed = (request.json for request in upstream.requests)
            assert (named["service_tier"], named["n"]) == ("flex", 1)
            assert named["max_tokens"] == 10
            assert unnamed["max_completion_tokens"] == 100
            assert not {"store", "max_completion_tokens"} & named.keys()
            assert not {"store", "service_tier", "n", "max_tokens"} & unnamed.keys()

            # What is new is refused, and changes nothing.
            reply = await client.command(
                "configure", conversation="named", config={"params": {"n": 2}}
            )
            assert reply["error"]["code"] == "bad_frame"
            assert reply["error"]["param"] == "$.config.params.n"
            assert "from 0 to 1" in reply["error"]["message"]
            members = {"config": {"model": "gpt", "params": {"n": 1}}}
            reply = await client.command("open", conversation="new", **members)
            assert reply["error"]["code"] == "bad_frame"
            assert reply["error"]["param"] == "$.config.params.n"
            await client.open("new")
            assert await turn(client, "new") == "completed"
            assert not GREEDY.keys() & upstream.requests[-1].json.keys()

            # What a model does not bound, and what is within, arrives.
            await begin(client, "free", "free")
            assert await turn(client, "free") == "completed"
            assert GREEDY.items() <= upstream.requests[-1].json.items()
            reply = await client.command(
                "configure", conversation="named", config={"params": {"max_tokens": 3}}
            )
            assert reply["outcome"] == "configured"
            assert await turn(client, "named") == "completed"
            assert upstream.requests[-1].json["max_tokens"] == 3
