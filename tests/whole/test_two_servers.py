"""Two servers and one store: the second is refused, and clients are told the truth.

Case L-15: a client that lands on another process.
"""

import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

import anyio

from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Copy, wire


async def start_beside(folder: Path) -> tuple[int, str]:
    """Tries to start another server on the same store; returns exit code and log."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "WSSERVER_"))
    }
    command = [sys.executable, "-m", "wsserver", "serve", "--port=0", "--store=sqlite"]
    with anyio.fail_after(15):
        done = await anyio.run_process(
            command, env=environ | {"XDG_STATE_HOME": str(folder)}, check=False
        )
    assert done.stdout == b"", "it never said that it listens"
    return done.returncode, done.stderr.decode()


async def begin(running: ServerProcess, copies: dict[str, Copy]) -> int:
    """Begins an answer; returns its turn once there is text."""
    async with wire(running.url, copies) as client:
        config = {"model": "demo/long:tokens=400,tokens_per_second=200"}
        await client.open("c", config=config)
        reply = await client.command("send", conversation="c", content="hi")
        await client.until(lambda: copies["c"].texts[reply["turn"]])
    return reply["turn"]


async def test_a_second_server_on_a_store_does_not_start(tmp_path: Path) -> None:
    copies: dict[str, Copy] = defaultdict(Copy)
    async with server("--store=sqlite", folder=tmp_path) as first:
        turn = await begin(first, copies)

        code, err = await start_beside(tmp_path)

        assert code == 2
        assert err.count("\n") == 1
        assert err.startswith("wsserver: store: ")
        assert f"in use by another server (process {first.pid}): stop it, or" in err
        assert "--store sqlite:PATH" in err
        # And the first goes on as if nothing had been.
        async with wire(first.url, copies) as client:
            assert (await client.open("c"))["outcome"] == "replay"
            assert (await client.done("c", turn))["status"] == "completed"
    copies["c"].prove()


async def test_once_the_first_is_gone_the_second_has_all_that_was_seen(
    tmp_path: Path,
) -> None:
    """Killed, not ended: what held the store is released by the system."""
    copies: dict[str, Copy] = defaultdict(Copy)
    async with server("--store=sqlite", folder=tmp_path) as first:
        turn = await begin(first, copies)
        first.signal(signal.SIGKILL)
        await first.wait()
    async with (
        server("--store=sqlite", folder=tmp_path) as second,
        wire(second.url, copies) as client,
    ):
        assert (await client.open("c"))["outcome"] == "replay"
        done = await client.done("c", turn)
    assert (done["status"], done["reason"]) == ("incomplete", "server_restarted")
    copies["c"].prove()


async def test_another_server_with_a_store_of_its_own_says_not_here(
    tmp_path: Path,
) -> None:
    """So the client shows what it has, and knows that here is no more to be had."""
    copies: dict[str, Copy] = defaultdict(Copy)
    for name in ("one", "two"):
        await anyio.Path(tmp_path / name).mkdir()
    async with (
        server("--store=sqlite", folder=tmp_path / "one") as first,
        server("--store=sqlite", folder=tmp_path / "two") as second,
    ):
        turn = await begin(first, copies)
        async with wire(second.url, copies) as lost:
            reply = await lost.open("c")
            assert not reply["ok"]
            assert reply["error"]["code"] == "conversation_not_found"
            assert not reply["error"]["retryable"]
            assert lost.copies["c"].last > 0, "nothing that it had was dropped"
        async with wire(first.url, copies) as back:
            assert (await back.open("c"))["outcome"] == "replay"
            await back.done("c", turn)
    copies["c"].prove()
