"""Conversations that are deleted: elsewhere, or twice, as a reply was lost."""

from typing import Any

import anyio
import pytest

from client_demo import connect
from client_demo.errors import ConversationNotFoundError
from client_demo.session import Notice
from protocol.client.events import Disconnected, Lost
from tests.client_demo.double import Double, Peer


async def test_one_deleted_elsewhere_ends_for_all_who_use_it(server: Double) -> None:
    notices: list[Notice] = []
    async with connect(server.url, notify=notices.append) as client:
        chat = await client.open("c")
        running, waiting = chat.send("1"), chat.send("2")
        await server.begin()
        await server.peer.command("send")
        await running.accepted()
        await server.delete("c")
        for turn in (running, waiting):
            with pytest.raises(ConversationNotFoundError, match="It was deleted"):
                await turn.wait()
        (lost,) = [notice for notice in notices if isinstance(notice, Lost)]
        assert lost.conversation == "c"
        server.peer.cut()
        peer = await server.connection(2)
        await anyio.sleep(1)
        assert (peer.opens, peer.waiting()) == ([], 0)
        again = await client.open("c")
        assert not again.view.timeline
        assert peer.waiting() == 0


async def test_a_conversation_that_is_gone_ends_its_turns(server: Double) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        turn = chat.send("hi")
        await server.begin()

        async def refuse(peer: Any, frame: dict[str, Any]) -> None:
            await peer.refuse(frame, "conversation_not_found")

        server.open = refuse  # pyright: ignore[reportAttributeAccessIssue]
        server.peer.cut()
        with pytest.raises(ConversationNotFoundError):
            await turn.wait()


async def test_one_deleted_while_the_connection_was_down_is_not_made_again(
    server: Double,
) -> None:
    notices: list[Notice] = []
    async with connect(server.url, notify=notices.append) as client:
        chat = await client.open("c")
        running, waiting = chat.send("1"), chat.send("2")
        await server.begin()
        await server.peer.command("send")
        await running.accepted()
        del server.logs["c"]
        server.peer.cut()
        for turn in (running, waiting):
            with pytest.raises(ConversationNotFoundError, match="no longer has this"):
                await turn.wait()
        (lost,) = [notice for notice in notices if isinstance(notice, Lost)]
        assert lost.conversation == "c"
        server.peer.cut()
        assert not (await server.connection(3)).opens
        assert "c" not in server.logs


async def test_a_conversation_begun_while_the_connection_was_down_is_made(
    server: Double,
) -> None:
    cut_off = anyio.Event()

    def notice(notice: Notice) -> None:
        if isinstance(notice, Disconnected):
            cut_off.set()

    async with connect(server.url, notify=notice) as client:
        server.peer.cut()
        await cut_off.wait()
        await client.open("c")
    assert "c" in server.logs


async def test_what_is_opened_only_if_it_is_there_is_not_made(server: Double) -> None:
    server.logs["there"] = []
    async with connect(server.url) as client:
        await client.open("there", create=False)
        with pytest.raises(ConversationNotFoundError, match="no longer has this"):
            await client.open("c", create=False)
        assert "c" not in server.logs
        await client.open("c")
    assert "c" in server.logs


async def test_a_fork_under_way_outlives_what_it_is_a_copy_of(server: Double) -> None:
    made: list[str] = []

    async def fork() -> None:
        made.append(await chat.fork(new="d"))

    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(fork)
        command = await server.peer.command("fork")
        await server.delete("c")
        await server.peer.reply(command, "created", conversation="d")
    assert made == ["d"]


async def test_the_tools_of_one_deleted_elsewhere_end(server: Double) -> None:
    stopped = anyio.Event()

    async def endless() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async def quick() -> str:
        return "done"

    async with connect(server.url) as client:
        await client.open("c", tools=[endless, quick])
        for name in ("endless", "quick"):
            await server.peer.send(
                type="tool_request", conversation="c", turn=2, call=name, name=name,
                deadline_ms=1000, arguments={}, redelivered=False,
            )  # fmt: skip
        await server.peer.command("tool_result")
        await server.delete("c")
        with anyio.fail_after(10):
            await stopped.wait()
        await anyio.sleep(1)
        assert server.peer.waiting() == 0, "nobody is told that it was refused"


async def test_a_delete_that_finds_nothing_has_succeeded(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(chat.delete)
        first = await server.peer.command("delete")
        server.peer.cut()
        peer = await server.connection(2)
        again = await peer.command("delete")
        assert again == first
        await peer.refuse(again, "conversation_not_found")


async def test_what_is_deleted_before_its_history_came_is_not_opened(
    server: Double,
) -> None:
    async def half_open(peer: Peer, frame: dict[str, Any]) -> None:
        server.logs["c"] = []
        verdict = {"conversation": "c", "epoch": "e1", "head": 1, "oldest": 1}
        await peer.reply(frame, "replay", **verdict)
        await server.delete("c")

    server.open = half_open
    async with connect(server.url) as client:
        with anyio.fail_after(60), pytest.raises(ConversationNotFoundError):
            await client.open("c")
