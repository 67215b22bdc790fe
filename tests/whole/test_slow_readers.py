"""A client that stops reading costs a cursor, and in the end its connection."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Wire, wire

FAST = {"model": "demo/long:tokens=40000,tokens_per_second=0"}


async def flood(client: Wire, names: list[str], seconds: float = 30.0) -> int:
    """Lets each conversation produce a long answer; returns the bytes of text."""
    for name in names:
        await client.open(name, config=FAST)
        reply = await client.command(
            "send", conversation=name, content="go", id=f"s-{name}"
        )
        assert reply["ok"], reply
    for name in names:
        await client.until(lambda name=name: client.copies[name].dones, seconds)
    total = 0
    for name in names:
        (done,) = client.copies[name].dones.values()
        assert done["status"] == "completed", done
        total += done["text"]["bytes"]
    return total


async def warm(running: ServerProcess) -> int:
    """Lets the server reach its working size; returns that."""
    async with wire(running.url) as client:
        await flood(client, ["warm-1", "warm-2"])
    return running.rss_bytes()


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_a_reader_that_pauses_gets_everything_merged(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(10)]
    async with server("--store", "sqlite", folder=tmp_path) as running:
        before = await warm(running)
        async with wire(running.url) as slow, wire(running.url) as quick:
            for name in names:
                await slow.open(name, config=FAST)
            slow.socket.transport.pause_reading()
            total = await flood(quick, names)
            assert total > 1_000_000
            await anyio.sleep(1)  # the server's own buffers come to rest
            grown = running.rss_bytes() - before
            assert grown < 24 * 2**20, f"{grown} bytes for {total} bytes of text"
            slow.socket.transport.resume_reading()
            for name in names:
                await slow.until(lambda name=name: slow.copies[name].dones, 30)
                slow.copies[name].prove()
                assert slow.copies[name].texts == quick.copies[name].texts
            deltas = [frame for frame in slow.frames if frame["type"] == "delta"]
            assert len(deltas) < 40_000, "what was missed comes merged"


@pytest.mark.timeout(60)
async def test_a_peer_that_never_reads_again_is_gone_in_bounded_time(
    tmp_path: Path,
) -> None:
    env = {
        "WSSERVER_SLOW_AFTER_SECONDS": "2",
        "WSSERVER_HEARTBEAT_SECONDS": "1",
        "WSSERVER_MAX_ACTIVE_TURNS": "64",
    }
    async with (
        server("--store", "memory", folder=tmp_path, env=env) as running,
        wire(running.url) as dead,
        wire(running.url) as quick,
    ):
        names = [f"c{number}" for number in range(20)]
        for name in names:
            await dead.open(name, config=FAST)
        dead.socket.transport.pause_reading()
        await flood(quick, names)
        with anyio.fail_after(10):
            while "code=4513" not in running.log:
                await anyio.sleep(0.1)
        # What it missed is there for its next connection.
        async with wire(running.url, dead.copies) as again:
            for name in names:
                await again.open(name)
                await again.until(lambda name=name: again.copies[name].dones)
                again.copies[name].prove()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("peers", [20])
async def test_shutdown_does_not_wait_for_peers_that_do_not_read(
    peers: int, tmp_path: Path
) -> None:
    env = {"WSSERVER_DRAIN_SECONDS": "1"}
    async with (
        server("--store", "memory", folder=tmp_path, env=env) as running,
        anyio.create_task_group() as tasks,
    ):
        ready: list[Any] = []

        async def dead(number: int) -> None:
            async with wire(running.url) as client:
                await client.open(f"d{number}", config=FAST)
                client.socket.transport.pause_reading()
                await client.send(
                    type="send", id="s", conversation=f"d{number}", content="go"
                )
                ready.append(client)
                await anyio.sleep_forever()

        for number in range(peers):
            tasks.start_soon(dead, number)
        with anyio.fail_after(20):
            while len(ready) < peers:
                await anyio.sleep(0.05)
        await anyio.sleep(0.5)
        began = anyio.current_time()
        assert await running.terminate() == 0
        assert anyio.current_time() - began < 1 + 2 + 0.5
        tasks.cancel_scope.cancel()
