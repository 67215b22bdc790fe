"""A conversation is judged when it is over, and not while one of its turns runs."""

from typing import Any

import anyio
import msgspec
import pytest

from client_demo.load.connection import Site
from client_demo.load.recording import Origin
from client_demo.load.scenario import Plan, Scenario
from client_demo.load.tally import Tally
from client_demo.load.user import Run, be_user
from protocol.content import ServerInfo
from tests.client_demo.double import Double, Frame, Peer
from tests.fakes.clocks import jumping_loop

STEER = {
    "name": "steer",
    "steps": [
        {"do": "open"},
        {"do": "send", "text": "go"},
        {"do": "wait_for", "event": "start"},
        {"do": "send", "text": "left over", "policy": "steer"},
        {"do": "wait_for", "event": "done"},
    ],
}
NAME = "run-0-0-0-1"


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": jumping_loop}


async def end(server: Double, turn: int) -> None:
    await server.event(
        NAME, "usage", turn=turn, input_tokens=1, output_tokens=1, estimated=False,
        model_calls=1,
    )  # fmt: skip
    await server.done(NAME, turn)


async def be_one_user(server: Double, tally: Tally) -> None:
    """Goes through the script once; its conversation is `NAME`."""
    scenario = {"title": "t", "stages": [{"seconds": 0, "users": 1}], "groups": [STEER]}
    run = Run(
        plan=Plan(scenario=msgspec.convert(scenario, Scenario), prompts={}),
        site=Site(url=server.url),
        name="run",
        origin=Origin(server=ServerInfo(name="s", version="1"), started_at=""),
    )
    (group,) = run.plan.scenario.groups
    await be_user(run, group, tally, number=0, time=0, late_seconds=0.0)


@pytest.mark.parametrize("reread_has_it", [True, False])
async def test_a_turn_that_begins_while_it_is_read_again_is_waited_for(
    server: Double, reread_has_it: bool
) -> None:
    tally = Tally(lambda: 0.0)
    left_over = 0
    replay = server.open

    async def open_(peer: Peer, frame: Frame) -> None:
        if len(server.peers) == 2 and reread_has_it:
            await begin_late()
        await replay(peer, frame)
        if len(server.peers) == 2 and not reread_has_it:
            await begin_late()

    async def begin_late() -> None:
        server.peers.reverse()  # events go to the newest, which has to be the user
        turn = await server.start(NAME, left_over)

        async def go_on() -> None:
            await anyio.sleep(5)
            await server.say(NAME, turn, "late")
            await end(server, turn)

        tasks.start_soon(go_on)

    server.open = open_  # pyright: ignore[reportAttributeAccessIssue]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(be_one_user, server, tally)
        turn = await server.begin(NAME)
        user = server.peer
        left_over = await server.message(NAME, await user.command("send"), steers=turn)
        await end(server, turn)
        delete = await user.command("delete")
        ended = [one["turn"] for one in server.logs[NAME] if one["type"] == "done"]
        await user.reply(delete, "deleted")
    assert tally.violations == []
    assert ended == [turn, left_over + 3]
    assert tally.counters["reread"] == 1


async def test_a_log_that_grows_whenever_it_is_read_is_a_violation(
    server: Double,
) -> None:
    tally = Tally(lambda: 0.0)
    replay = server.open

    async def open_(peer: Peer, frame: Frame) -> None:
        if peer is not server.peers[0]:
            log = server.logs[NAME]
            grown: Frame = {"type": "config", "conversation": NAME, "config": {}}
            log.append(grown | {"seq": len(log) + 1})
            await server.peers[0].send(**log[-1])
            await peer.send(type="caught_up", seq="bad")
        await replay(peer, frame)

    server.open = open_  # pyright: ignore[reportAttributeAccessIssue]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(be_one_user, server, tally)
        turn = await server.begin(NAME)
        user = server.peer
        await server.message(NAME, await user.command("send"), steers=turn)
        await end(server, turn)
        last = len(server.logs[NAME])
        await user.reply(await user.command("delete"), "deleted")
    assert len(server.peers) == 1 + 5
    bad, grew = tally.violations
    assert bad.kind == "bad_frame", "the same each time, and told once"
    assert (grew.kind, grew.seq) == ("reread_differs", last + 5)
    assert grew.what == "it grew each of the 5 times that it was read again"
