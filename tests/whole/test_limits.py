"""One client's greed is refused, with a word, and nobody else feels it."""

import statistics
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from anyio.lowlevel import checkpoint
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes.replies import streamed, text_events
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream
from tests.fakes.wire import Wire, wire

ANN, ANN_TOO, BOB = "ann-has-this-key", "ann-has-another", "bob-has-this-key"


@asynccontextmanager
async def keyed(folder: Path, **settings: object) -> AsyncGenerator[ServerProcess]:
    """A server that knows two principals."""
    keys = anyio.Path(folder / "keys")
    await keys.write_text(f"team/ann:{ANN}\nteam/amy:{ANN_TOO}\nbob:{BOB}\n")
    await keys.chmod(0o600)
    env = {f"WSSERVER_{name.upper()}": str(value) for name, value in settings.items()}
    flags = ("--store", "memory", "--auth-keys-file", str(keys))
    async with server(*flags, folder=folder, env=env) as running:
        yield running


# P-12: as many turns as are allowed, and no more


@pytest.mark.timeout(60)
async def test_two_hundred_sends_at_once(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    most_open = 0
    upstream.script(
        streamed(text_events("word ", "by ", "word"), before_body_seconds=0.3)
    )
    names = [f"c{number}" for number in range(200)]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(wire(running.url)) for _ in "ab"]
        limit = clients[0].welcome["limits"]["active_turns"]
        assert limit == 16
        for number, name in enumerate(names):
            await clients[number % 2].open(name)

        async def watch() -> None:
            nonlocal most_open
            while True:
                most_open = max(most_open, upstream.connections_open)
                await anyio.sleep(0.005)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            refused = await send_all(clients, names)
            assert len(refused) >= 200 - 2 * limit, "far more came than are allowed"
            while refused:
                again, later = refused[:limit], refused[limit:]
                refused = await send_all(clients, again) + later
            tasks.cancel_scope.cancel()
        assert most_open <= limit
        assert len(upstream.requests) == len(names), "each was asked once"
        for number, name in enumerate(names):
            (done,) = clients[number % 2].copies[name].dones.values()
            assert done["status"] == "completed"


async def send_all(clients: list[Wire], names: list[str]) -> list[str]:
    """Sends to all at once, and waits for the turns that start.

    Returns those that were refused; they may be sent again under the same id.
    """
    refused: list[str] = []

    async def send(name: str) -> None:
        client = clients[int(name[1:]) % 2]
        reply = await client.command("send", conversation=name, content="go", id=name)
        if reply["ok"]:
            assert reply["outcome"] == "started"
            await client.done(name, reply["turn"])
        else:
            error = reply["error"]
            assert error["code"] == "too_many_turns"
            assert error["retryable"] is True
            assert error["retry_after_ms"] > 0
            refused.append(name)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(send, name)
    return refused


# P-13: a flood of tiny frames


async def latencies(clients: list[Wire], seconds: float) -> list[float]:
    """Lets each client ping now and then; returns the times to the answers."""
    taken: list[float] = []

    async def ping(client: Wire) -> None:
        pings = 0
        ends_at = anyio.current_time() + seconds
        while anyio.current_time() < ends_at:
            pings += 1
            began = anyio.current_time()
            await client.send(type="ping", t=pings)
            await client.until(
                lambda: client.frames[-1].get("t") == pings  # noqa: B023
            )
            taken.append(anyio.current_time() - began)
            await anyio.sleep(0.02)

    async with anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(ping, client)
    return taken


async def flood(client: Wire, frame: dict[str, Any], count: int) -> int:
    """Sends frames as fast as they go, until it is closed; returns the close code."""
    text = orjson.dumps(frame).decode()
    try:
        for _ in range(count):
            await client.socket.send(text)
            await checkpoint()  # all clients read: what is measured is the server
    except ConnectionClosed:
        pass
    return await client.closed()


@pytest.mark.timeout(60)
async def test_ten_thousand_pings_in_a_second_disturb_nobody(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    async with (
        server("--store", "memory", folder=tmp_path) as running,
        AsyncExitStack() as stack,
    ):
        normal = [await stack.enter_async_context(wire(running.url)) for _ in range(10)]
        flooder = await stack.enter_async_context(wire(running.url))
        calm = await latencies(normal, 1.0)
        codes: list[int] = []
        async with anyio.create_task_group() as tasks:

            async def go() -> None:
                codes.append(await flood(flooder, {"type": "ping"}, 10_000))

            tasks.start_soon(go)
            stormy = await latencies(normal, 1.0)
        assert codes == [4529]
        kinds = [frame["type"] for frame in flooder.frames]
        assert kinds.count("pong") >= flooder.welcome["limits"]["frames_burst"]
        errors = [frame for frame in flooder.frames if frame["type"] == "error"]
        assert errors, "it was told before"
        assert {error["code"] for error in errors} == {"rate_limited"}
        assert all(error["retry_after_ms"] > 0 for error in errors)
        for client in normal:
            assert client.close_code is None
            assert client.controls == [
                frame for frame in client.controls if frame["type"] == "pong"
            ]
        for name, taken in (("calm", calm), ("stormy", stormy)):
            taken.sort()
            record_property(f"{name}_median_ms", statistics.median(taken) * 1000)
            record_property(f"{name}_p99_ms", taken[int(len(taken) * 0.99)] * 1000)
        assert statistics.median(stormy) < 3 * statistics.median(calm) + 0.01
        assert stormy[int(len(stormy) * 0.99)] < calm[-1] + 0.25


FLOODS: dict[str, dict[str, Any]] = {
    "commands": {"type": "close", "id": "x", "conversation": "c"},
    "sends": {"type": "send", "id": "x", "conversation": "no", "content": "x"},
    "unanswered": {"type": "tool_progress", "conversation": "no", "call": "c"},
    "nonsense": {"type": "nonsense"},
}


async def test_a_flood_of_each_kind_ends_the_flooder_alone(tmp_path: Path) -> None:
    codes: dict[str, int] = {}
    async with (
        server("--store", "memory", folder=tmp_path) as running,
        wire(running.url) as other,
    ):
        await other.open("c")

        async def go(kind: str, frame: dict[str, Any]) -> None:
            async with wire(running.url) as flooder:
                codes[kind] = await flood(flooder, frame, 2_000)

        async with anyio.create_task_group() as tasks:
            for kind, frame in FLOODS.items():
                tasks.start_soon(go, kind, frame)
        assert codes.pop("nonsense") == 4400
        assert set(codes.values()) == {4529}
        assert (await other.command("close", conversation="c"))["ok"]


async def test_what_a_principal_may_say_is_shared_by_its_connections(
    tmp_path: Path,
) -> None:
    limits = {"max_frames_per_second": 4, "max_principal_frames_per_second": 6}
    async with (
        keyed(tmp_path, **limits) as running,
        wire(running.url, token=ANN) as first,
        wire(running.url, token=ANN_TOO) as second,
        wire(running.url, token=BOB) as other,
    ):
        announced = first.welcome["limits"]
        assert announced["frames_per_second"] == 4
        assert announced["frames_burst"] == 20
        assert announced["principal_frames_per_second"] == 6
        replies = [
            await client.command("close", conversation="c")
            for client in (first, second)
            for _ in range(18)
        ]
        refused = [reply["error"] for reply in replies if not reply["ok"]]
        assert 0 < len(refused) < 10, "30 at once, and 6 a second"
        assert {error["code"] for error in refused} == {"rate_limited"}
        assert all(error["retry_after_ms"] > 0 for error in refused)
        assert (await other.command("close", conversation="c"))["ok"]


# Connections


async def test_so_many_connections_of_a_principal(tmp_path: Path) -> None:
    async with (
        keyed(tmp_path, max_principal_connections=2) as running,
        wire(running.url, token=ANN) as first,
    ):
        assert first.welcome["limits"]["principal_connections"] == 2
        async with wire(running.url, token=ANN_TOO):
            async with wire(running.url, hello=False) as third:
                await third.send(type="hello", protocol=1, token=ANN)
                assert await third.closed() == 4529
                (error,) = third.frames
                assert (error["type"], error["code"]) == ("error", "rate_limited")
                assert error["retry_after_ms"] == 5000
            async with wire(running.url, token=BOB) as other:
                assert other.welcome
        with anyio.fail_after(10):
            while True:
                async with wire(running.url, hello=False) as again:
                    await again.send(type="hello", protocol=1, token=ANN)
                    await again.until(lambda again=again: again.frames)
                    if again.welcome:
                        break
        assert (await first.command("close", conversation="c"))["ok"]


async def test_so_many_connections_of_an_address(tmp_path: Path) -> None:
    limits = {"max_address_connections": 2, "trusted_proxies": "127.0.0.1,::1"}

    def far(url: str, address: str) -> Any:
        headers = {"X-Forwarded-For": f"10.9.9.9, {address}"}
        return wire(url, token=BOB, additional_headers=headers)

    async with (
        keyed(tmp_path, **limits) as running,
        far(running.url, "192.0.2.1") as first,
        far(running.url, "192.0.2.1"),
        far(running.url, "192.0.2.2"),
        wire(running.url, token=BOB),
        wire(running.url, token=BOB),
        wire(running.url, token=BOB),
    ):
        assert first.welcome["limits"]["address_connections"] == 2
        with pytest.raises(InvalidStatus) as caught:
            async with far(running.url, "192.0.2.1"):
                pass
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "5"


async def test_so_many_connections_of_all(tmp_path: Path) -> None:
    async with (
        keyed(tmp_path, max_connections=2) as running,
        wire(running.url, token=ANN),
        wire(running.url, token=BOB),
    ):
        with pytest.raises(InvalidStatus) as caught:
            async with wire(running.url, token=BOB):
                pass
        assert caught.value.response.status_code == 503
        assert caught.value.response.headers["Retry-After"] == "5"


async def test_without_credentials_nobody_shares_a_principals_limits(
    tmp_path: Path,
) -> None:
    env = {
        "WSSERVER_MAX_PRINCIPAL_CONNECTIONS": "1",
        "WSSERVER_MAX_PRINCIPAL_FRAMES_PER_SECOND": "1",
    }
    async with (
        server("--store", "memory", folder=tmp_path, env=env) as running,
        wire(running.url) as first,
        wire(running.url) as second,
    ):
        announced = first.welcome["limits"]
        assert "principal_connections" not in announced
        assert "principal_stored_conversations" not in announced
        assert "principal_frames_per_second" not in announced
        for _ in range(20):
            assert (await second.command("close", conversation="c"))["ok"]


# What one connection may hold


async def test_each_limit_of_welcome_is_kept(tmp_path: Path) -> None:
    settings = {
        "max_conversations": 2,
        "max_principal_conversations": 3,
        "max_queued": 1,
        "max_frame_bytes": 163_840,
        "max_tool_output_bytes": 1024,
        "max_active_turns": 2,
        "max_turn_bytes": 2048,
    }
    async with (
        keyed(tmp_path, **settings) as running,
        wire(running.url, token=ANN) as client,
        wire(running.url, token=ANN_TOO) as shares,
        wire(running.url, token=BOB) as other,
    ):
        limits = client.welcome["limits"]
        assert limits == {
            "frame_bytes": 163_840,
            "conversations": 2,
            "active_turns": 2,
            "queued": 1,
            "pending_tools": 32,
            "tool_output_bytes": 1024,
            "idempotency_s": 86_400,
            "depth": 64,
            "turn_bytes": 2048,
            "tool_rounds": 16,
            "frames_per_second": 100,
            "frames_burst": 500,
            "principal_frames_per_second": 1000,
            "principal_connections": 1000,
            "principal_conversations": 3,
            "principal_stored_conversations": 100_000,
            "address_connections": 1000,
            "max_delay_ms": 10_000,
        }
        slow = {"model": "demo/long:tokens=1000,tokens_per_second=10"}
        long = {"model": "demo/long:tokens=4000,tokens_per_second=0"}

        async def code(type_: str, **members: Any) -> str | None:
            reply = await client.command(type_, **members)
            return None if reply["ok"] else reply["error"]["code"]

        assert await code("open", conversation="a", max_delay_ms=10_001) == "bad_frame"
        await client.open("a", config=slow)
        await client.open("b", config=long)
        assert await code("open", conversation="c") == "too_many_conversations"
        await shares.open("a")
        reply = await shares.command("open", conversation="b")
        assert reply["error"]["code"] == "too_many_conversations"
        assert (await other.open("b"))["ok"]
        deep: Any = []
        for _ in range(limits["depth"]):
            deep = [deep]
        big = "x" * 163_840
        for content, expected in ((big, "too_large"), (deep, "bad_frame")):
            assert await code("send", conversation="a", content=content) == expected
        assert await code("send", conversation="a", content="1") is None
        assert await code("send", conversation="a", content="2") is None
        assert await code("send", conversation="a", content="3") == "queue_full"
        output = "x" * 1025
        assert (
            await code("tool_result", conversation="a", call="k", output=output)
            == "too_large"
        )
        reply = await client.command("send", conversation="b", content="1")
        done = await client.done("b", reply["turn"])
        assert done["status"] == "failed"
        kinds = {e["type"]: e for e in client.copies["b"].events}
        assert kinds["error"]["code"] == "response_too_large"
        assert client.close_code is None
