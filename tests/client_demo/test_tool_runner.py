"""Runs of one call's name, one after another: each answers for itself alone."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from client_demo import connect, tool
from client_demo.tool_runner import ToolRunner
from client_demo.tools import Fault, Output
from protocol.control import ToolRequest
from tests.client_demo.double import Double


def request(turn: int) -> ToolRequest:
    return ToolRequest(
        conversation="c", turn=turn, call="call_0", name="work",
        arguments={"turn": turn}, deadline_ms=1000, redelivered=False,
    )  # fmt: skip


async def test_a_call_whose_name_comes_again_is_another_call() -> None:
    """Some models count calls from 0, and a log may have begun anew."""
    go = {1: anyio.Event(), 2: anyio.Event()}
    answers: list[tuple[int, Output | Fault]] = []

    @tool
    async def work(turn: int) -> int:
        with anyio.CancelScope(shield=turn == 1):
            await go[turn].wait()
        return turn

    async with anyio.create_task_group() as tasks:
        runner = ToolRunner(
            tasks, lambda asked, given: answers.append((asked.turn, given)), print
        )
        runner.handle("c", {"work": work})
        runner.start(request(1))
        await anyio.wait_all_tasks_blocked()
        runner.start(request(2))
        go[1].set()
        await anyio.wait_all_tasks_blocked()
        assert not answers, "nobody waits for the first any more"
        go[2].set()
    assert answers == [(2, Output(output=2))]


@pytest.mark.parametrize("how", ["delete", "reset"])
async def test_a_tool_ends_with_its_conversation(server: Double, how: str) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def work() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c", tools=[work])
        asked = {"conversation": "c", "turn": 2, "call": "k", "name": "work"}
        await server.peer.send(
            type="tool_request", arguments={}, deadline_ms=9_000, redelivered=False, **asked
        )  # fmt: skip
        await began.wait()
        if how == "delete":
            tasks.start_soon(chat.delete)
        else:
            server.epoch = "another"
            server.peer.cut()
        with anyio.fail_after(10):
            await ended.wait()
            await checkpoint()
        tasks.cancel_scope.cancel()
