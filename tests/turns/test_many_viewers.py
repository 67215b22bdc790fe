"""Several who watch one conversation: all see the same, whatever their pace."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from protocol.content import Tool
from protocol.fold import fold
from tests.fakes.scripted import Step, says
from tests.turns.follower import Follower
from tests.turns.talk import Talk, asks, call, settled, talking
from wsserver.engine.model import Finished, Text

TOOLS = [Tool(name="weather")]
STREAM: list[Step] = [
    *[step for n in range(300) for step in ([Text(f"t{n} ")], 0.001)],
    [Finished(reason="stop")],
]


@asynccontextmanager
async def followed(
    talk: Talk, *pauses: float, handles: tuple[str, ...] = ()
) -> AsyncGenerator[list[Follower]]:
    async with anyio.create_task_group() as tasks:
        followers: list[Follower] = []
        for number, pause in enumerate(pauses):
            follower = Follower(talk.conversation, f"f{number}", *handles)
            follower.pause_seconds = pause
            talk.conversation.attach(follower)
            tasks.start_soon(follower.run, talk.conversation)
            followers.append(follower)
        yield followers
        tasks.cancel_scope.cancel()


async def test_the_fast_and_the_slow_see_the_same_text() -> None:
    async with talking(STREAM) as talk, followed(talk, 0.0, 0.01, 1.0) as followers:
        talk.send()
        await talk.done()
        await talk.rig.committer.flush()
        await anyio.sleep(500.0)
        whole = fold(await talk.log())
        for follower in followers:
            assert follower.view == whole
            assert follower.position == talk.conversation.log.head
        numbers = [len(follower.events) for follower in followers]
        assert numbers[0] > numbers[2], "the slow one gets merged frames"


async def test_an_interrupt_of_one_is_seen_by_all_and_mutes_only_that_one() -> None:
    async with talking(STREAM) as talk, followed(talk, 0.0, 0.03) as followers:
        turn = talk.send(viewer=followers[1]).turn or 0
        await anyio.sleep(0.1)
        slow = followers[1]
        sent = slow.position
        assert sent < talk.conversation.log.stored
        reply = talk.interrupt(slow)
        assert reply.keep_through == sent
        done = await talk.done()
        await talk.rig.committer.flush()
        await anyio.sleep(50.0)
        for follower in followers:
            shown = str(follower.view.turns[turn].text)
            assert len(shown.encode()) == done.text.bytes
        assert followers[0].muted == []
        assert slow.muted == [turn]


async def test_who_comes_later_sees_all_of_it() -> None:
    async with talking(STREAM) as talk:
        talk.send()
        await anyio.sleep(0.1)
        async with followed(talk, 0.0) as [late]:
            await talk.done()
            await talk.rig.committer.flush()
            await settled()
            assert late.view == fold(await talk.log())


async def test_one_leaves_and_the_turn_goes_on_for_the_others() -> None:
    stream: list[Step] = [[Text("a")], 100.0, [Text("b")], [Finished(reason="stop")]]
    async with talking(stream) as talk:
        second = talk.join("c2")
        talk.send()
        await settled()
        talk.conversation.detach(talk.viewer)
        await anyio.sleep(25.0)
        talk.conversation.detach(second)
        third = talk.join("c3")
        await anyio.sleep(1.0)
        talk.conversation.detach(third)
        assert talk.conversation.turn is not None
        done = await talk.done()
        assert done.reason == "upstream_stalled", "not abandoned: that takes 60 s"


async def test_waiting_is_told_to_all_who_watch() -> None:
    async with talking([15.0, [], 10.0, *says("a")]) as talk:
        second = talk.join("c2")
        talk.send()
        await talk.done()
        for viewer in (talk.viewer, second):
            assert [frame.elapsed_ms // 1000 for frame in viewer.waiting] == [10, 20]
            phases = [frame.phase for frame in viewer.waiting]
            assert phases == ["connecting", "waiting_first_token"]


async def test_every_viewer_sees_the_call_and_one_is_asked() -> None:
    async with (
        talking([asks(call(0))], says("ok"), tools=TOOLS) as talk,
        followed(talk, 0.0, 0.0, 0.0, handles=("weather",)) as followers,
    ):
        turn = talk.send(viewer=followers[1]).turn or 0
        await settled()
        assert [len(follower.requests) for follower in followers] == [0, 1, 0]
        call_id = followers[1].requests[0].call
        for follower in followers:
            assert follower.view.turns[turn].calls[call_id].status == "open"
        talk.result(call_id, "r")
        await talk.done()
        await talk.rig.committer.flush()
        await settled()
        for follower in followers:
            assert follower.view.turns[turn].calls[call_id].output == "r"
