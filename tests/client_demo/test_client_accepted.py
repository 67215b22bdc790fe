"""When the server has a message: what `accepted` and a turn's block wait for."""

import anyio
from anyio.lowlevel import checkpoint

from client_demo import connect
from tests.client_demo.double import Double


async def test_accepted_waits_for_the_reply_of_the_server(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        known: list[str] = []

        async def wait() -> None:
            await turn.accepted()
            known.append("accepted")

        tasks.start_soon(wait)
        send = await server.peer.command("send")
        await server.event("c", "message", id=send["id"], role="user", content="hi",
                           by="me", at="2026-01-01T00:00:00.000Z")  # fmt: skip
        await anext(turn)
        assert not known, "in the log, but not replied to"
        await server.peer.reply(send, "started")
        with anyio.fail_after(5):
            while not known:
                await checkpoint()


async def test_a_turn_that_is_joined_was_accepted(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        first = chat.send("hi")

        tasks.start_soon(server.begin)
        await anext(first)
        await anext(first)
        joined = chat.running()
        assert joined is not None
        with anyio.fail_after(5):
            await joined.accepted()
            await first.accepted()


async def test_new_credentials_are_given_at_once_and_to_the_next_connection(
    server: Double,
) -> None:
    async with (
        connect(server.url, token="old", backoff_seconds=(0.01, 0.02)) as client,  # noqa: S106
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.refresh, "new")
        refresh = await server.peer.command("refresh")
        assert refresh == refresh | {"token": "new"}
        await server.peer.reply(refresh, "refreshed")
        client.drop()
        peer = await server.connection(2)
        assert peer.hello == peer.hello | {"token": "new"}
