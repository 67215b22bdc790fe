"""Frames that wait for the store, in order, and hold up no others."""

from typing import Any

import anyio
import pytest

from tests.connections.journal import Disk, Journal, desk, settle
from wsserver.connections.gates import Held
from wsserver.connections.lane import ControlLane


def reply(re: str, changes: int, **members: Any) -> Held:
    return Held(frame=b'{"re":"%b"}' % re.encode(), re=re, changes=changes, **members)


async def test_a_reply_waits_until_the_store_has_it() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        journal.say("a")
        assert journal.hurries == 0
        d.writer.gates.hold(journal.log, reply("1", 1))
        assert journal.hurries == 1, "also where text is all that the store lacks"
        d.writer.push(b'{"type":"pong"}')
        await settle()
        assert d.got() == [{"type": "pong"}]
        await journal.commit()
        await settle()
        assert d.got() == [{"re": "1"}]
        assert not journal.log._wakes, "nothing is left behind"
        assert d.writer.gates.held == 0


async def test_what_is_stored_already_leaves_at_once() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        d.writer.gates.hold(journal.log, reply("1", 1))
        assert journal.hurries == 0
        await settle()
        assert d.got() == [{"re": "1"}]


async def test_replies_of_a_conversation_keep_their_order() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        journal.say("a")
        d.writer.gates.hold(journal.log, reply("1", 1))
        d.writer.gates.hold(journal.log, reply("2", 0))
        await settle()
        assert d.got() == []
        await journal.commit()
        await settle()
        assert d.got() == [{"re": "1"}, {"re": "2"}]


async def test_replies_of_another_conversation_do_not_wait() -> None:
    disk = Disk()
    stuck, other = Journal(disk, "stuck"), Journal(disk, "other")
    async with desk() as d:
        stuck.say("a")
        d.writer.gates.hold(stuck.log, reply("1", 1))
        other.say("a")
        d.writer.gates.hold(other.log, reply("2", 1))
        await other.commit()
        await settle()
        assert d.got() == [{"re": "2"}]


async def test_a_reply_waits_for_text_that_has_to_go_first() -> None:
    journal = await Journal(Disk()).told(*["x" * 1000] * 200)
    async with desk() as d:
        d.wire.stall()
        view = d.view(journal)
        await settle()
        view.flush(150)
        d.writer.gates.hold(journal.log, reply("1", 0, view=view, sent_through=150))
        await settle()
        d.wire.flow()
        await settle()
        frames = d.got()
        where = frames.index({"re": "1"})
        assert [f["seq"] for f in frames[:where] if "seq" in f][-1] >= 150


async def test_a_reply_does_not_wait_for_a_view_that_was_closed() -> None:
    journal = await Journal(Disk()).told(*["x" * 1000] * 200)
    async with desk() as d:
        view = d.view(journal, window_bytes=1024)
        await settle()
        d.writer.gates.hold(journal.log, reply("1", 0, view=view, sent_through=200))
        await settle()
        assert {"re": "1"} not in d.got()
        view.close()
        await settle()
        assert d.got() == [{"re": "1"}]


async def test_a_deletion_ends_the_wait() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        journal.say("b")
        d.writer.gates.hold(journal.log, reply("lost", 2))
        d.writer.gates.hold(journal.log, Held(frame=b'{"type":"tool"}', changes=2))
        d.writer.gates.hold(journal.log, reply("kept", 1))
        journal.log.delete()
        await settle()
        assert d.got() == [], "a crash may bring it back"
        journal.log.go()
        await settle()
        lost, kept = d.got()
        assert (lost["re"], lost["error"]["code"]) == ("lost", "conversation_not_found")
        assert kept == {"re": "kept"}


async def test_nothing_waits_for_a_log_that_is_gone() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        journal.log.delete()  # while a command read the store, say
        journal.log.go()
        journal.say("b")
        d.writer.gates.hold(journal.log, reply("lost", 2))
        d.writer.gates.hold(journal.log, Held(frame=b'{"type":"tool"}', changes=2))
        d.writer.gates.hold(journal.log, reply("kept", 1))
        await settle()
        lost, kept = d.got()
        assert (lost["re"], lost["error"]["code"]) == ("lost", "conversation_not_found")
        assert kept == {"re": "kept"}
        assert not journal.log._wakes


async def test_clearing_leaves_no_subscription() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        journal.say("a")
        d.writer.gates.hold(journal.log, reply("1", 1))
        journal.log.touch()
        d.writer.gates.clear()
        await journal.commit()
        await settle()
        assert d.got() == []
        assert not journal.log._wakes


def filled(
    *, max_frames: int = 3, max_bytes: int = 10
) -> tuple[ControlLane, list[int]]:
    calls: list[int] = []
    lane = ControlLane(
        max_frames=max_frames,
        max_answer_bytes=max_bytes,
        overfull=lambda: calls.append(1),
    )
    return lane, calls


def test_the_lane_is_bounded_in_frames() -> None:
    lane, calls = filled()
    for _ in range(3):
        lane.push(b"x" * 100)
    assert (len(lane.frames), calls) == (3, [])
    lane.push(b"x")
    assert (len(lane.frames), len(calls)) == (3, 1)


@pytest.mark.parametrize("answers", [[b"x" * 9, b"x"], [b"x", b"x", b"x"]])
async def test_so_many_answers_or_bytes_of_them_fill_the_lane(
    answers: list[bytes],
) -> None:
    lane, calls = filled()
    lane.push(b"x" * 100)
    for answer in answers:
        assert not lane.full
        lane.answer(answer)
    assert lane.full
    lane.answer(b"x" * 100)
    assert (len(lane.frames), calls) == (len(answers) + 2, []), (
        "what is owed is not dropped"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lane.emptied)
        await settle()
        lane.take()
    assert not lane.full


def test_taking_all_makes_room() -> None:
    lane, calls = filled()
    for n in range(20):
        lane.push(b"%d" % n)
        assert lane.take() == [b"%d" % n]
    assert not calls
    assert lane.take() == []
