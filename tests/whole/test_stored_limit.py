"""A principal has so many conversations in the store: real processes, sockets, a file."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Wire, wire

ANN, ANN_TOO, BOB = "ann-has-this-key", "ann-has-another", "bob-has-this-key"


@asynccontextmanager
async def keyed(folder: Path) -> AsyncGenerator[ServerProcess]:
    keys = anyio.Path(folder / "keys")
    await keys.write_text(f"team/ann:{ANN}\nteam/amy:{ANN_TOO}\nbob:{BOB}\n")
    await keys.chmod(0o600)
    env = {"WSSERVER_MAX_PRINCIPAL_STORED_CONVERSATIONS": "3"}
    flags = ("--store", "sqlite", "--auth-keys-file", str(keys))
    async with server(*flags, folder=folder, env=env) as running:
        yield running


async def outcome(client: Wire, type_: str, **members: Any) -> str:
    reply = await client.command(type_, **members)
    return reply["outcome"] if reply["ok"] else reply["error"]["code"]


async def turn(client: Wire, name: str) -> int:
    reply = await client.command("send", conversation=name, content="hi")
    assert (await client.done(name, reply["turn"]))["status"] == "completed"
    return reply["turn"]


async def test_so_many_are_stored_whatever_becomes_of_the_process(
    tmp_path: Path,
) -> None:
    full = "too_many_conversations"
    async with (
        keyed(tmp_path) as running,
        wire(running.url, token=ANN) as ann,
        wire(running.url, token=BOB) as bob,
    ):
        assert ann.welcome["limits"]["principal_stored_conversations"] == 3
        assert (await ann.open("a", config={"model": "demo/echo"}))["ok"]
        through = await turn(ann, "a")
        fork: dict[str, Any] = {"conversation": "a", "through": through}
        assert await outcome(ann, "fork", **fork, new="b", id="f") == "created"
        assert await outcome(bob, "open", conversation="a") == "created"
        await running.kill()

    async with (
        keyed(tmp_path) as running,
        wire(running.url, token=ANN) as ann,
        wire(running.url, token=ANN_TOO) as amy,
        wire(running.url, token=BOB) as bob,
    ):
        assert await outcome(amy, "open", conversation="c") == "created"
        for client in (ann, amy):
            reply = await client.command("open", conversation="d")
            assert reply["error"]["code"] == full
            assert "3 conversations are stored" in reply["error"]["message"]
            assert "delete one first" in reply["error"]["message"]
        assert await outcome(ann, "open") == full
        await ann.open("a")
        assert await outcome(ann, "fork", **fork, new="d") == full
        assert await outcome(ann, "fork", **fork, new="b", id="f") == "created"
        assert await turn(ann, "a"), "what is there goes on"
        assert await outcome(bob, "open", conversation="d") == "created"
        assert await outcome(amy, "delete", conversation="c") == "deleted"
        assert await outcome(ann, "fork", **fork, new="d", id="g") == "created"
        assert await outcome(amy, "open", conversation="c") == full
        assert await running.terminate() == 0

    async with keyed(tmp_path) as running, wire(running.url, token=ANN) as ann:
        assert await outcome(ann, "open", conversation="e") == full
        assert await outcome(ann, "delete", conversation="d") == "deleted"
        assert await outcome(ann, "open", conversation="e") == "created"
        assert await outcome(ann, "open", conversation="f") == full
