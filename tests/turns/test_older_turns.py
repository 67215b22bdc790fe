"""Turns that only the store holds: found, cut, and in the next prompt as cut."""

from typing import Any

import anyio
import pytest

from protocol.commands import Interrupt
from protocol.control import Reply
from protocol.events import CutEvent
from tests.fakes.rig import ALICE
from tests.fakes.scripted import says
from tests.turns.talk import Talk, settled, talking
from wsserver.log.store import StoreError

SCRIPTS = [says("one ", "two ", "three"), *[says(f"answer {n}") for n in range(1, 9)]]


async def told(talk: Talk, turns: int = 5) -> list[int]:
    """Holds so many turns; returns their numbers. The first ones leave memory."""
    numbers: list[int] = []
    for n in range(turns):
        numbers.append(talk.send(f"q{n}", id=f"q{n}").turn or 0)
        await talk.done()
        await talk.rig.committer.flush()
    assert not talk.conversation.log.remembers(numbers[-3])
    return numbers


async def interrupt(talk: Talk, id_: str = "i", **members: Any) -> Reply:
    """Does what a connection does; says whether the store had to be asked."""
    command = Interrupt(id=id_, conversation="c", **members)
    if talk.conversation.remembers(command, ALICE):
        return talk.conversation.apply(command, ALICE, talk.viewer).reply
    applied = await talk.conversation.apply_older(command, ALICE, talk.viewer)
    return applied.reply


@pytest.mark.parametrize("by", ["turn", "send"])
@pytest.mark.parametrize("kept", [0, 1, 2, 3])
async def test_an_old_turn_is_cut_and_the_next_prompt_holds_what_stayed(
    kept: int, by: str
) -> None:
    async with talking(*SCRIPTS) as talk:
        first, *_ = await told(talk)
        named: dict[str, Any] = {"turn": first} if by == "turn" else {"send": "q0"}
        reply = await interrupt(talk, seen_seq=first + kept, **named)
        assert (reply.outcome, reply.turn) == ("already_finished", first)
        assert reply.keep_through == first + kept
        text = "one two three"[: [0, 4, 8, 13][kept]]
        cut = await talk.cut()
        assert (cut.turn, cut.text.bytes) == (first, len(text))
        talk.send("next")
        await talk.done()
        answer = [f"assistant: {text}"] if text else []
        assert talk.said()[: 2 + len(answer)] == ["user: q0", *answer, "user: q1"]


async def test_a_second_cut_of_an_old_turn_adds_nothing_and_may_take_more() -> None:
    async with talking(*SCRIPTS) as talk:
        first, *_ = await told(talk)
        seen = [first + 2, first + 3, first + 1]
        kept = [
            (await interrupt(talk, f"i{n}", turn=first, seen_seq=seq)).keep_through
            for n, seq in enumerate(seen)
        ]
        assert kept == [first + 2, first + 2, first + 1]
        again = await interrupt(talk, "i0", turn=first, seen_seq=first + 2)
        assert (again.keep_through, again.duplicate) == (first + 2, True)
        cuts = [event for event in await talk.log() if isinstance(event, CutEvent)]
        assert len(cuts) == 3


async def test_what_is_no_turn_or_not_kept_is_not_found() -> None:
    async with talking(*SCRIPTS) as talk:
        first, second, *_ = await told(talk)
        for n, turn in enumerate((first - 1, first + 1, second - 1)):
            assert (await interrupt(talk, f"i{n}", turn=turn)).outcome == "not_found"
        plain = await interrupt(talk, "plain", turn=first)
        assert (plain.outcome, plain.turn) == ("already_finished", first)
        talk.conversation.log.trim(second - 2)
        gone = await interrupt(talk, "gone", turn=first, seen_seq=first)
        assert gone.outcome == "not_found"
        sent = await interrupt(talk, "sent", send="q0", seen_seq=first)
        assert (sent.outcome, sent.turn) == ("already_finished", None)
        assert "cut" not in await talk.kinds()


async def test_after_a_restart_and_after_all_of_it_left_memory() -> None:
    async with talking(*SCRIPTS) as talk:
        first, *_ = await told(talk)
        await talk.left()
        talk.conversation = await talk.rig.conversation()
        reply = await interrupt(talk, send="q0", seen_seq=first + 1)
        assert (reply.turn, reply.keep_through) == (first, first + 1)


async def test_an_old_turn_never_touches_the_one_that_runs() -> None:
    async with talking(*SCRIPTS[:5], [1000.0]) as talk:
        first, *_ = await told(talk)
        talk.send("now")
        await settled()
        reply = await interrupt(talk, turn=first, seen_seq=first)
        assert reply.outcome == "already_finished"
        await settled()
        assert talk.conversation.running


async def test_a_store_that_can_not_be_read_says_so_and_nothing_is_cut() -> None:
    async with talking(*SCRIPTS) as talk:
        first, *_ = await told(talk)
        talk.rig.store.failing_reads = 1  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await interrupt(talk, turn=first, seen_seq=first)
        assert "cut" not in await talk.kinds()
        assert (await interrupt(talk, turn=first, seen_seq=first)).keep_through == first


async def test_two_at_once_cut_as_one_after_the_other() -> None:
    async with talking(*SCRIPTS) as talk:
        first, *_ = await told(talk)
        kept: list[Any] = []

        async def cut(id_: str, seen: int) -> None:
            reply = await interrupt(talk, id_, turn=first, seen_seq=seen)
            kept.append(reply.keep_through)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut, "a", first + 1)
            tasks.start_soon(cut, "b", first + 2)
        assert max(kept) <= first + 2
        assert kept[-1] == first + 1
        talk.send("next")
        await talk.done()
        assert talk.said()[1] == "assistant: one "
