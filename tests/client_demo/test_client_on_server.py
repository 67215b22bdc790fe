"""The client against the real server: over a network that cuts, and over its death."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest

from client_demo import Chat, Client, IncompleteAnswerError, connect, tool
from client_demo.errors import BadModelError, BusyError, ConversationNotFoundError
from protocol.content import Config
from protocol.events import DeltaEvent
from tests.fakes.proxy import proxy, random_faults
from tests.fakes.server import ServerProcess
from tests.fakes.server import server as server_process


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def real(tmp_path: Path) -> AsyncGenerator[ServerProcess]:
    async with server_process("--store", "memory", folder=tmp_path) as made:
        yield made


def proven(chat: Chat) -> bool:
    return all(turn.proven for turn in chat.view.turns.values())


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_network_that_cuts_every_connection_changes_nothing(
    real: ServerProcess, seed: int
) -> None:
    async def talk(client: Client, plain: Client, name: str) -> None:
        chat = await client.open(name, model="demo/emoji")
        turn = chat.send(name)
        got = ""
        async for event in turn:
            got += event.text if isinstance(event, DeltaEvent) else ""
        assert got == turn.text
        assert proven(chat)
        other = await plain.open(name)
        assert other.view.timeline == chat.view.timeline
        assert len(other.view.timeline) == 2, "one message, one turn"

    async with (
        proxy(real.url) as bad,
        connect(real.url) as plain,
        connect(bad.url(real.url), backoff_seconds=(0.05, 0.2)) as client,
    ):
        bad.fault = random_faults(seed, 6_000)
        bad.cut()
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(talk, client, plain, name)
        assert bad.connections > 2


async def test_a_server_that_is_killed_loses_nothing_that_was_seen(
    tmp_path: Path,
) -> None:
    start = partial(server_process, "--store", "sqlite", folder=tmp_path)
    got = ""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(start())
        client = await stack.enter_async_context(
            connect(first.url, backoff_seconds=(0.2, 0.5))
        )
        chat = await client.open("c", model="demo/long")
        turn = chat.send("hi")
        async for event in turn:
            got += event.text if isinstance(event, DeltaEvent) else ""
            if len(got) > 200:
                break
        await first.kill()
        port = int(first.url.rpartition(":")[2].partition("/")[0])
        await stack.enter_async_context(start(port=port))
        async for event in turn:
            got += event.text if isinstance(event, DeltaEvent) else ""
        done = await turn.wait()
        assert (done.status, done.reason) == ("incomplete", "server_restarted")
        assert got == turn.text
        assert proven(chat)


async def test_tools_run_once_over_a_network_that_cuts(real: ServerProcess) -> None:
    runs: Counter[str] = Counter()

    @tool
    async def get_time(city: str = "Bern") -> str:
        """Tells the time."""
        runs[city] += 1
        await anyio.sleep(0.05)
        return "noon"

    async with (
        proxy(real.url) as bad,
        connect(bad.url(real.url), backoff_seconds=(0.05, 0.2)) as client,
    ):
        chat = await client.open(model="demo/tools", tools=[get_time])
        turn = chat.send("What time is it? Use get_time.")
        async for event in turn:
            if event.__struct_config__.tag == "tool_call":
                bad.cut()
        calls = chat.view.turns[turn.turn_id or 0].calls.values()
        assert [call.status for call in calls] == ["ok"] * sum(runs.values())
        assert runs
        assert "noon" in await turn.answer()


async def test_leaving_early_keeps_what_was_seen(real: ServerProcess) -> None:
    async with connect(real.url) as client:
        chat = await client.open(model="demo/markdown")
        seen = ""
        async with chat.send("hi") as turn:
            async for piece in turn.pieces():
                seen += piece
                if len(seen) > 40:
                    break
        done = await turn.wait()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        assert turn.text == seen
        with pytest.raises(IncompleteAnswerError):
            await turn.answer()


async def test_policies(real: ServerProcess) -> None:
    async with connect(real.url) as client:
        chat = await client.open(model="demo/slow")
        first = chat.send("hi")
        await first.accepted()
        with pytest.raises(BusyError):
            await chat.ask("now", policy="reject")
        queued = chat.send("later")
        await queued.accepted()
        assert (await queued.interrupt()).outcome == "dequeued"
        second = chat.send("no, this", policy="interrupt")
        assert (await first.wait()).reason == "superseded"
        await second.interrupt()
        assert (await second.wait()).reason == "by_client"
        assert (await queued.wait()).reason == "by_client"
        assert proven(chat)


async def test_configure_fork_and_delete(real: ServerProcess) -> None:
    async with connect(real.url) as client:
        chat = await client.open(model="demo/fast")
        with pytest.raises(BadModelError):
            await chat.configure(Config(model="nobody"))
        await chat.ask("hi")
        fork = await client.open(await chat.fork())
        assert [t.text for t in fork.view.turns.values()] == [
            t.text for t in chat.view.turns.values()
        ]
        again = await client.open("other", model="demo/echo")
        await again.close()
        again = await client.open("other", model="demo/fast")
        assert again.view.config.model == "demo/fast"
        async with connect(real.url) as elsewhere:
            seen = await elsewhere.open(chat.conversation)
            await chat.delete()
            with pytest.raises(ConversationNotFoundError):
                await seen.ask("are you there?")
