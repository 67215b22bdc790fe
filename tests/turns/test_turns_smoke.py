import anyio
from protocol.commands import Interrupt, Send
from tests.fakes.rig import ALICE, FakeViewer, done, events, rig
from tests.fakes.scripted import ScriptedProvider, says


async def test_a_turn_from_message_to_done() -> None:
    provider = ScriptedProvider(says("Hello", " world"))
    async with rig(provider) as r:
        conversation = await r.conversation()
        viewer = FakeViewer(conversation)
        conversation.attach(viewer)
        applied = conversation.apply(
            Send(id="s1", conversation="c", content="hi"), ALICE, viewer
        )
        assert applied.reply.outcome == "started"
        end = await done(conversation)
        assert end.status == "completed"
        assert end.text.bytes == 11
        kinds = [type(event).__struct_config__.tag for event in await events(conversation)]
        assert kinds == ["message", "start", "delta", "usage", "done"]
        assert [m["content"] for m in provider.requests[0].messages] == ["hi"]


async def test_an_interrupt_keeps_what_was_sent() -> None:
    forever = anyio.Event()
    provider = ScriptedProvider([*says("One", " two")[:2], forever], says("again"))
    async with rig(provider) as r:
        conversation = await r.conversation()
        viewer = FakeViewer(conversation)
        conversation.attach(viewer)
        conversation.apply(Send(id="s1", conversation="c", content="hi"), ALICE, viewer)
        while conversation.log.head < 4:
            await anyio.sleep(0.001)
        applied = conversation.apply(
            Interrupt(id="i1", conversation="c", seen_seq=3), ALICE, viewer
        )
        assert applied.reply.keep_through == 3
        end = await done(conversation)
        assert (end.status, end.reason, end.text.bytes) == ("interrupted", "by_client", 3)
        assert provider.open_calls == 0
        conversation.apply(Send(id="s2", conversation="c", content="go on"), ALICE, viewer)
        await done(conversation)
        assert [m["content"] for m in provider.requests[1].messages] == ["hi", "One", "go on"]
