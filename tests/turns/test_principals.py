"""Ids of sends are their principal's own, also where a conversation is shared."""

import anyio

from protocol.commands import Interrupt, Send
from tests.fakes.rig import FakeViewer, done, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.principal import Principal
from wsserver.turns.services import ConversationLimits

X = Principal(name="x", space="alice")
Y = Principal(name="y", space="alice")


async def test_an_interrupt_by_id_never_meets_anothers_send() -> None:
    provider = ScriptedProvider([0.2, *says("to x")], says("to y"))
    async with rig(provider) as r:
        conversation = await r.conversation()
        viewer = FakeViewer(conversation)
        conversation.attach(viewer)
        for principal in (X, Y):
            send = Send(id="m1", conversation="c", content=f"from {principal.name}")
            conversation.apply(send, principal, viewer)
        interrupt = Interrupt(id="i1", conversation="c", send="m1")
        assert conversation.apply(interrupt, Y, viewer).reply.outcome == "dequeued"
        interrupt = Interrupt(id="i2", conversation="c", send="later")
        assert conversation.apply(interrupt, Y, viewer).reply.outcome == "pre_cancelled"
        end = await done(conversation)
        assert (end.status, end.reason) == ("interrupted", "by_client")
        assert len(provider.requests) == 1, "only the message of x reached the model"
        assert conversation.last_ids("x") == ["m1"]


async def test_what_waits_keeps_to_the_limit_of_turns_that_run() -> None:
    provider = ScriptedProvider([0.5, *says("one")], [0.1, *says("two")], says("three"))
    async with rig(provider, limits=ConversationLimits(active_turns=2)) as r:
        for name, ids in (("a", ["s"]), ("b", ["s", "t"])):
            conversation = await r.conversation(name)
            viewer = FakeViewer(conversation)
            conversation.attach(viewer)
            for id_ in ids:
                send = Send(id=id_, conversation="c", content="go")
                conversation.apply(send, X, viewer)
        long, short = await r.conversation("a"), await r.conversation("b")
        r.services.limits = ConversationLimits(active_turns=1)
        await anyio.sleep(0.3)
        assert (short.running, len(short.state.queue)) == (0, 1)
        await done(long)
        await done(short)
        assert r.services.running.total == 0
        assert len(provider.requests) == 3
