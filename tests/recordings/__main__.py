"""Makes the recordings anew: `python -m tests.recordings`.

They are what a server writes with `--record`; tests/operations/test_replay.py plays
them all. A recording of a fault that was found is put beside them as it came.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import orjson
from websockets.asyncio.client import connect

from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Copy, Wire, wire

HERE = Path(__file__).parent
SHORT = "demo/markdown:tokens=40,tokens_per_second=200,first_token_ms=20"
LONG = "demo/long:tokens=200,tokens_per_second=100,first_token_ms=20"
FAST = "demo/{}:tokens_per_second=0,first_token_ms=0"
MODELS = (
    "refusal", "failing-midway", "failing-late", "filtered", "length", "cut-off",
    "empty", "chinese", "tools-invalid",
)  # fmt: skip
TOOL = {
    "name": "get_time",
    "description": "The time in a place.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
}


async def text(client: Wire, name: str, size: int) -> None:
    """Waits until the newest answer has so many characters."""
    await client.until(lambda: any(map(size.__le__, map(len, texts(client, name)))))


def texts(client: Wire, name: str) -> list[str]:
    return list(client.copies[name].texts.values())[-1:]


async def tool_call(there: ServerProcess) -> None:
    """Two parallel calls, answered; then the answer."""
    async with wire(there.url) as client:
        config = {"model": SHORT, "tools": [TOOL]}
        await client.open("c", config=config, handles=["get_time"])
        question = "What time is it in Tokyo and in Atlantis? Use get_time."
        sent = await client.command("send", conversation="c", content=question)
        await client.until(lambda: requests(client))
        for request in requests(client):
            result = {"call": request["call"], "output": {"time": "12:00"}}
            await client.command("tool_result", conversation="c", **result)
        await client.done("c", sent["turn"])


def requests(client: Wire) -> list[dict[str, Any]]:
    return [frame for frame in client.controls if frame["type"] == "tool_request"]


async def stop_and_resume(there: ServerProcess) -> None:
    """An answer is stopped, the next is cut off by the network and resumed."""
    copies: dict[str, Copy] = defaultdict(Copy)
    async with wire(there.url, copies) as client:
        await client.open("c", config={"model": LONG})
        await client.command("send", conversation="c", content="Go on and on")
        await text(client, "c", 100)
        seen = copies["c"].last - 3
        await client.command("interrupt", conversation="c", seen_seq=seen, keep="seen")
        again = await client.command("send", conversation="c", content="And again")
        await text(client, "c", 100)
    async with wire(there.url, copies) as client:
        await client.open("c")
        await client.done("c", again["turn"])
        await client.command(
            "fork", conversation="c", through=copies["c"].last, new="d"
        )


async def busy(there: ServerProcess) -> None:
    """While one answer runs: queued, taken back, steered, refused."""
    async with wire(there.url) as client, wire(there.url) as viewer:
        await client.open("c", config={"model": LONG})
        await viewer.open("c", window_bytes=2048)
        await client.command("send", id="first", conversation="c", content="First")
        await client.command("send", id="second", conversation="c", content="Second")
        await client.command("send", id="third", conversation="c", content="Third")
        await client.command("interrupt", conversation="c", send="second")
        steer = {"policy": "steer", "content": "Shorter, please"}
        await client.command("send", id="steer", conversation="c", **steer)
        reject = {"policy": "reject", "content": "Now"}
        await client.command("send", id="reject", conversation="c", **reject)
        await text(client, "c", 60)
        instead = {"policy": "interrupt", "content": "Instead"}
        await client.command("send", id="instead", conversation="c", **instead)
        await text(client, "c", 60)
        await client.command("interrupt", conversation="c")


async def mistakes(there: ServerProcess) -> None:
    """What clients get wrong, and a command that the inspector gave twice."""
    async with wire(there.url) as client, connect(feed(there)) as page:
        await client.send(type="no_such_type", id="x1")
        await client.command("open", id="x2", conversation="c", after=-1)
        await client.command("send", id="x3", conversation="nowhere", content="Hi")
        await client.socket.send("this is not JSON")
        await client.open("c", config={"model": SHORT})
        order = {"act": "duplicate", "connection": client.welcome["connection"]}
        await page.send(orjson.dumps(order).decode())
        async for message in page:
            if b'"act"' in orjson.dumps(orjson.loads(message)):
                break
        sent = await client.command("send", id="x4", conversation="c", content="Once")
        await client.done("c", sent["turn"])
        await client.command("send", id="x4", conversation="c", content="Other")


async def names(there: ServerProcess) -> None:
    """The server names a conversation and a fork; models think, refuse, fail, stop."""
    async with wire(there.url) as client:
        named = await client.command("open", config={"model": FAST.format("reasoning")})
        name = named["conversation"]
        first = await client.command("send", conversation=name, content="Think")
        await client.done(name, first["turn"])
        await client.command("fork", conversation=name, through=first["turn"])
        stale = {"conversation": name, "epoch": "another", "after": 1}
        await client.command("open", **stale)
        for model in MODELS:
            config = {"model": FAST.format(model), "tools": [TOOL]}
            await client.command("configure", conversation=name, config=config)
            parts = [{"type": "text", "text": f"Show {model}; what time is it?"}]
            sent = await client.command("send", conversation=name, content=parts)
            await client.done(name, sent["turn"])
        await client.send(type="ping", t=1)
        await client.command("refresh", token="a-new-token")  # noqa: S106 - no secret
        await client.command("close", conversation=name)


async def name_again(there: ServerProcess) -> None:
    """A name is used again after its conversation was deleted, and forked in each life."""
    async with wire(there.url) as client, wire(there.url) as viewer:
        for life in ("First", "Second", "Third"):
            await client.open("c", config={"model": SHORT})
            await viewer.open("c")
            turns: list[int] = []
            for content in (life, f"{life} and more"):
                sent = await client.command("send", conversation="c", content=content)
                turns.append(sent["turn"])
                if life == "Second":
                    await text(client, "c", 20)
                    stop = {"turn": sent["turn"], "seen_seq": client.copies["c"].last}
                    await client.command("interrupt", conversation="c", **stop)
                await client.done("c", sent["turn"])
            for nth, turn in enumerate(turns):
                fork = {"through": turn, "new": f"{life}-{nth}"}
                await client.command("fork", conversation="c", **fork)
            await client.open(f"{life}-1")
            await viewer.done("c", turns[-1])
            await client.command("delete", conversation="c")
            await viewer.until(lambda: any("gone" in said for said in viewer.controls))
            del client.copies["c"], viewer.copies["c"], viewer.controls[:]


async def thrown_out(there: ServerProcess) -> None:
    """A client of another version is told so, and let go."""
    async with wire(there.url, hello=False) as client:
        await client.send(type="hello", protocol=99)
        await client.closed()


def feed(there: ServerProcess) -> str:
    return there.url.replace("/v1/chat", "/inspect/feed")


PLAYS: dict[str, tuple[Callable[[ServerProcess], Awaitable[None]], list[str]]] = {
    "tool-call": (tool_call, []),
    "stop-and-resume": (stop_and_resume, ["--inspect-content"]),
    "busy": (busy, []),
    "names": (names, ["--inspect-content"]),
    "name-again": (name_again, []),
    "thrown-out": (thrown_out, []),
    "mistakes": (mistakes, ["--inspect", "--inspect-content"]),
}


async def main() -> None:
    for name, (play, flags) in PLAYS.items():
        path = HERE / f"{name}.jsonl"
        path.unlink(missing_ok=True)
        store = ["--store", "memory", "--record", str(path)]
        with TemporaryDirectory() as folder:
            async with server(*store, *flags, folder=Path(folder)) as there:
                await play(there)
                await there.terminate()
        path.chmod(0o644)


if __name__ == "__main__":
    anyio.run(main)
