"""What an application does at the wrong moment: nothing waits for ever, nothing leaks out."""

import threading

import anyio
import pytest

from client_demo import CommandError, NotConnectedError, StoppedError, connect, tool
from client_demo.errors import ConversationNotFoundError
from client_demo.tools import Fault, Output, ToolContext
from protocol.control import ToolRequest
from tests.client_demo.double import Double


async def test_leaving_while_credentials_are_given_is_no_error(server: Double) -> None:
    tokens = iter(["old", "new"])

    async def new_token() -> str:
        return next(tokens)

    async with connect(server.url, token=new_token):
        await server.peer.send(type="auth_expiring", in_ms=1000)
        await server.peer.command("refresh")


async def test_a_server_that_ends_it_while_credentials_are_given_ends_no_block(
    server: Double,
) -> None:
    tokens = iter(["old", "new"])

    async def new_token() -> str:
        return next(tokens)

    async with connect(server.url, token=new_token) as client:
        await server.peer.send(type="auth_expiring", in_ms=1000)
        await server.peer.command("refresh")
        await server.peer.close(4400)
        await anyio.sleep(1)
        with pytest.raises(StoppedError):
            await client.open("c")


async def test_credentials_that_never_come_are_a_failed_attempt(server: Double) -> None:
    async def never() -> str:
        await anyio.sleep(600)
        return "late"

    with pytest.raises(NotConnectedError, match="no credentials after 5 s"):
        async with connect(server.url, token=never, open_timeout_seconds=5):
            raise AssertionError("it must not be entered")


async def test_an_open_whose_settings_are_refused_leaves_nothing_open(
    server: Double,
) -> None:
    server.logs["c"] = []
    async with connect(server.url) as client, anyio.create_task_group() as tasks:

        async def refuse() -> None:
            await server.peer.refuse(
                await server.peer.command("configure"), "bad_model"
            )
            await server.peer.reply(await server.peer.command("close"), "closed")

        tasks.start_soon(refuse)
        with pytest.raises(CommandError) as refused:
            await client.open("c", model="unknown")
        assert refused.value.code == "bad_model"
        await client.open("c")


async def test_in_a_conversation_that_was_closed_nothing_is_said(
    server: Double,
) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        chat.send("hi")
        await _running(server)

        async def let_go() -> None:
            await server.peer.reply(await server.peer.command("close"), "closed")

        tasks.start_soon(let_go)
        await chat.close()
        joined = chat.running()
        assert joined is not None
        with anyio.fail_after(5), pytest.raises(ConversationNotFoundError):
            await joined.wait()
        with anyio.fail_after(5), pytest.raises(ConversationNotFoundError):
            await chat.ask("more")
        assert server.peer.waiting() == 0


async def _running(server: Double) -> None:
    send = await server.peer.command("send")
    await server.start("c", await server.message("c", send))
    await anyio.sleep(1)


async def test_a_block_that_is_cancelled_before_it_is_entered_takes_the_send_back(
    server: Double,
) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        with anyio.move_on_after(5):
            async with chat.send("hi"):
                raise AssertionError("it must not be entered")
        send = await server.peer.command("send")
        interrupt = await server.peer.command("interrupt")
    assert interrupt["send"] == send["id"]


async def test_a_tool_that_is_cancelled_from_within_is_answered(server: Double) -> None:
    @tool
    async def work() -> str:
        raise anyio.get_cancelled_exc_class()

    async with connect(server.url) as client:
        chat = await client.open("c", tools=[work])
        await server.peer.send(
            type="tool_request", conversation="c", turn=2, call="k", name="work",
            arguments={}, deadline_ms=1000, redelivered=False,
        )  # fmt: skip
        result = await server.peer.command("tool_result")
        chat.send("still here")
        await _running(server)
    assert "cancelled" in result["error"]["message"]


def test_a_plain_tool_waits_for_no_other() -> None:
    """Others may block for hours, as on a person; in real threads and time."""
    together = threading.Barrier(45, timeout=10)
    given: list[Output | Fault] = []

    @tool
    def work() -> str:
        together.wait()
        return "done"

    async def run() -> None:
        given.append(await work.run({}, ToolContext(asked("k"), print)))

    async def run_all() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(45):
                tasks.start_soon(run)

    anyio.run(run_all)
    assert given == [Output(output="done")] * 45


async def test_credentials_that_are_cancelled_from_within_are_a_failed_attempt(
    server: Double,
) -> None:
    async def cancelled() -> str:
        raise anyio.get_cancelled_exc_class()

    with pytest.raises(NotConnectedError, match="was cancelled"):
        async with connect(server.url, token=cancelled):
            raise AssertionError("it must not be entered")


def asked(call: str) -> ToolRequest:
    return ToolRequest(
        conversation="c", turn=2, call=call, name="work", arguments={},
        deadline_ms=1000, redelivered=False,
    )  # fmt: skip
