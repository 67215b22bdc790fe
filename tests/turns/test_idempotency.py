"""A command that comes twice has the effect and the reply of once."""

from typing import Any

import anyio
import pytest

from protocol.commands import Command, Configure, Fork, Interrupt, Send, ToolResult
from protocol.content import Config, Tool
from protocol.control import Reply
from tests.fakes.rig import ALICE
from tests.fakes.scripted import Step, says
from tests.turns.talk import Talk, asks, call, settled, talking
from wsserver.auth.principal import Principal
from wsserver.log.store import RECEIPTS_KEPT
from wsserver.turns.errors import CommandError
from wsserver.turns.receipts import Receipts

TOOLS = [Tool(name="weather")]
SCRIPT: list[Step] = [asks(call(0))]
BOB = Principal(name="bob", space="alice")

COMMANDS: dict[str, Any] = {
    "send": lambda n: Send(id="x", conversation="c", content=f"m{n}"),
    "configure": lambda n: Configure(
        id="x", conversation="c", config=Config(instructions=f"i{n}")
    ),
    "interrupt": lambda n: Interrupt(id="x", conversation="c", seen_seq=n),
    "result": lambda n: ToolResult(id="x", conversation="c", call="call_3.0", output=n),
}


async def reopened(talk: Talk) -> None:
    """Lets the conversation leave memory, and loads it again."""
    await talk.done()
    await talk.rig.committer.flush()
    talk.conversation.detach(talk.viewer)
    await settled()
    before = talk.conversation
    talk.conversation = await talk.rig.conversation()
    assert talk.conversation is not before


@pytest.mark.parametrize("name", COMMANDS)
async def test_the_second_time_nothing_happens_and_the_reply_is_the_same(
    name: str,
) -> None:
    async with talking(SCRIPT, says("b"), tools=TOOLS) as talk:
        assert talk.send().turn == 3
        await settled()
        command = COMMANDS[name](1)
        first = talk.apply(command, talk.viewer)
        assert not first.duplicate
        await settled()
        told = await talk.kinds()
        again = talk.apply(COMMANDS[name](1), talk.viewer)
        assert again.duplicate is True
        assert (again.outcome, again.seq, again.turn, again.keep_through) == (
            first.outcome, first.seq, first.turn, first.keep_through,
        )  # fmt: skip
        assert await talk.kinds() == told
        with pytest.raises(CommandError) as refused:
            talk.apply(COMMANDS[name](2), talk.viewer)
        assert refused.value.body.code == "idempotency_conflict"
        for other in set(COMMANDS) - {name}:
            with pytest.raises(CommandError):
                talk.apply(COMMANDS[other](1), talk.viewer)
        assert await talk.kinds() == told
        talk.interrupt(keep="generated")
        await reopened(talk)
        later = talk.apply(COMMANDS[name](1), talk.viewer)
        assert later == again, "also after it has left memory"
        with pytest.raises(CommandError):
            talk.apply(COMMANDS[name](2), talk.viewer)


async def test_another_principal_and_another_conversation_have_ids_of_their_own() -> (
    None
):
    async with talking(says("a")) as talk:
        command = Send(id="x", conversation="c", content="mine")
        assert talk.apply(command).outcome == "started"
        bobs = Send(id="x", conversation="c", content="bob's")
        assert not talk.apply(bobs, by=BOB).duplicate
        other = await talk.rig.conversation("d")
        assert not other.apply(command, ALICE, None).reply.duplicate
        assert talk.apply(bobs, by=BOB).duplicate is True


async def test_what_was_refused_may_be_sent_again_under_its_id() -> None:
    async with talking(says("a", "b")) as talk:
        talk.send()
        with pytest.raises(CommandError):
            talk.send("hi", id="x", policy="reject")
        await talk.done()
        reply = talk.send("other", id="x")
        assert (reply.outcome, bool(reply.duplicate)) == ("started", False)


async def test_a_fork_that_comes_twice_is_made_once() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        command = Fork(id="x", conversation="c", through=2)

        async def fork(given: Fork) -> Any:
            applied = await talk.fork_as(given)
            return applied.reply

        first, again = await fork(command), await fork(command)
        assert again.duplicate is True
        assert again.conversation == first.conversation
        with pytest.raises(CommandError) as refused:
            await fork(Fork(id="x", conversation="c", through=1))
        assert refused.value.body.code == "idempotency_conflict"


async def test_two_forks_under_one_id_at_the_same_time_are_one() -> None:
    async with talking(says("a")) as talk:
        talk.send()
        await talk.done()
        command = Fork(id="x", conversation="c", through=2)
        replies: list[Any] = []

        async def fork() -> None:
            applied = await talk.fork_as(command)
            replies.append(applied.reply)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(fork)
        assert len({reply.conversation for reply in replies}) == 1
        assert sorted(bool(reply.duplicate) for reply in replies) == [False, True, True]
        assert talk.rig.directory.statistics()[0] <= 2


def test_the_newest_of_each_principal_are_kept() -> None:
    receipts = Receipts()

    def command(number: int) -> Command:
        return Interrupt(id=f"x{number}", conversation="c")

    reply = Reply(re="x", ok=True, outcome="not_found")
    receipts.add("bob", command(0), reply, 0.0)
    for number in range(RECEIPTS_KEPT + 5):
        receipts.add("alice", command(number), reply, 0.0)
    assert receipts.find("alice", command(4)) is None
    assert receipts.find("alice", command(5)) is not None
    assert receipts.find("bob", command(0)) is not None
    assert receipts.knows("bob", "x0")
    assert not receipts.knows("bob", "x1")
