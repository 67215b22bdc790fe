"""A client that stops reading costs a cursor, and in the end its connection."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.replies import text_events
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
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


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_a_reader_that_pauses_gets_everything_merged(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(10)]
    async with (
        server("--store", "sqlite", folder=tmp_path) as running,
        wire(running.url) as slow,
        wire(running.url) as quick,
    ):
        for name in names:
            await slow.open(name, config=FAST)
        slow.socket.transport.pause_reading()
        total = await flood(quick, names)
        assert total > 1_000_000
        slow.socket.transport.resume_reading()
        for name in names:
            await slow.until(lambda name=name: slow.copies[name].dones, 30)
            slow.copies[name].prove()
            assert slow.copies[name].texts == quick.copies[name].texts
        deltas = [frame for frame in slow.frames if frame["type"] == "delta"]
        assert len(deltas) < 40_000, "what was missed comes merged"


async def missed(running: ServerProcess, names: list[str], peers: int) -> int:
    """Lets peers read nothing of long answers until they are dropped.

    Returns:
        How much memory the server held at the most.
    """
    most, before = 0, running.log.count("code=4513")
    async with AsyncExitStack() as exits:
        for _ in range(peers):
            dead = await exits.enter_async_context(wire(running.url))
            exits.callback(dead.socket.transport.abort)
            for name in names:
                await dead.open(name)
            dead.socket.transport.pause_reading()
        for name in names:
            await dead.send(type="send", id="s", conversation=name, content="go")
        with anyio.fail_after(20):
            while running.log.count("code=4513") < before + peers:
                most = max(most, running.rss_bytes())
                await anyio.sleep(0.02)
    return most


@pytest.mark.timeout(60)
async def test_a_peer_that_never_reads_again_is_gone_in_bounded_time(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {
        "OPENAI_BASE_URL": upstream.base_url,
        "WSSERVER_SLOW_AFTER_SECONDS": "2",
        "WSSERVER_HEARTBEAT_SECONDS": "1",
        "WSSERVER_MAX_ACTIVE_TURNS": "64",
    }
    text = "0123456789" * 100
    upstream.script(
        Reply(body=b"".join(text_events(*[text] * 1000)), write_bytes=65_536)
    )
    names = [f"c{number}" for number in range(20)]
    async with server("--store", "sqlite", folder=tmp_path, env=env) as running:
        by_one = await missed(running, [f"one-{name}" for name in names], 1)
        by_nine = await missed(running, names, 9)
        # What they missed is there for whoever comes next.
        async with wire(running.url) as again:
            for name in names:
                await again.open(name)
                await again.until(lambda name=name: again.copies[name].dones)
                again.copies[name].prove()
                assert list(again.copies[name].texts.values()) == [text * 1000]
    grown = by_nine - by_one
    assert grown < 80 * 2**20, f"{grown} bytes for eight who miss 20 MB each"


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
