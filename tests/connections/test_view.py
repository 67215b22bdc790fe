"""A cursor and what it lets through: windows, catching up, trims, mutes."""

import anyio
import pytest

from protocol.control import ToolRequest, Waiting
from tests.connections.journal import Disk, Journal, desk, numbers, settle, text


async def test_caught_up_comes_once_where_the_head_was_at_the_open() -> None:
    journal = await Journal(Disk()).told("a", "b", "c")
    async with desk() as d:
        d.wire.stall()
        d.view(journal, after=1)
        await journal.told("d", "e")
        await settle()
        d.wire.flow()
        await journal.told("f")
        await settle()
        frames = d.got()
        assert numbers(frames) == [2, 3, 4, 5, 6]
        where = [frame["type"] for frame in frames].index("caught_up")
        assert frames[where] == {"type": "caught_up", "conversation": "c", "seq": 3}
        assert numbers(frames[:where]) == [2, 3], "nothing live before it"
        assert [frame["type"] for frame in frames].count("caught_up") == 1


async def test_caught_up_comes_at_once_where_there_is_nothing_to_catch_up() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        d.view(journal)
        await settle()
        assert d.got() == [{"type": "caught_up", "conversation": "c", "seq": 0}]
        await journal.told("a")
        await settle()
        assert [frame["type"] for frame in d.got()] == ["delta"]


async def test_a_window_stops_the_conversation_until_it_is_acknowledged() -> None:
    disk = Disk()
    journal = await Journal(disk).told(*["x" * 200] * 50)
    other = Journal(disk, "other")
    async with desk() as d:
        view = d.view(journal, frames=True, window_bytes=1024)
        d.view(other)
        await settle()
        frames = d.got()
        stopped = view.position
        assert 1024 <= sum(len(str(f)) for f in frames if "text" in f) < 1024 + 400
        await other.told("goes on")
        await settle()
        assert text(d.got(), "other") == "goes on"
        view.wake()
        await settle()
        assert view.position == stopped
        for _ in range(50):
            view.ack(view.position)
            await settle()
        frames += d.got()
        assert numbers(frames) == list(range(1, 51))


async def test_acknowledging_more_than_was_sent_opens_no_more_than_all() -> None:
    journal = await Journal(Disk()).told(*["x" * 200] * 50)
    async with desk() as d:
        view = d.view(journal, frames=True, window_bytes=1024)
        await settle()
        first = view.position
        view.ack(10**9)
        await settle()
        assert first < view.position <= 2 * first + 1


async def test_without_a_window_an_ack_means_nothing() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        view = d.view(journal)
        await settle()
        view.ack(1)
        await settle()
        assert view.position == 1


async def test_a_window_holds_no_block_that_others_wait_for() -> None:
    disk = Disk()
    shut = await (await Journal(disk, "shut").told(*["x" * 50] * 100)).forgotten()
    other = await (await Journal(disk, "other").told("past")).forgotten()
    async with desk() as d:
        view = d.view(shut, frames=True, window_bytes=1024)
        await settle()
        assert view.position < 100
        d.view(other)
        await settle()
        assert text(d.got(), "other") == "past"


async def test_what_has_to_be_flushed_does_not_wait_for_acknowledgements() -> None:
    journal = await Journal(Disk()).told(*["x" * 200] * 50)
    async with desk() as d:
        view = d.view(journal, frames=True, window_bytes=1024)
        await settle()
        assert view.position < 20
        view.flush(40)
        await settle()
        assert 40 <= view.position < 50


async def test_muted_text_goes_out_as_numbers_only() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        await journal.told("seen", turn=1)
        await settle()
        view.mute(1)
        await journal.told("unseen", "unseen", turn=1)
        await journal.told("next", turn=4)
        await settle()
        frames = d.got()
        assert text(frames) == "seennext"
        assert numbers(frames) == [1, 2, 3, 4]


async def test_a_turn_muted_before_it_was_sent_leaves_an_earlier_one_muted() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        await settle()
        view.mute(1)
        view.mute(3)
        await journal.told("unseen", "unseen", turn=1)
        await journal.told("unseen", turn=3)
        await journal.told("next", turn=4)
        await settle()
        assert text(d.got()) == "next"


async def test_turns_that_are_behind_the_cursor_are_not_remembered() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        for turn in range(1, 50):
            await journal.told("x", turn=turn)
            await settle()
            view.mute(turn)
        assert view._lens.muted == {49}


async def test_a_log_trimmed_beyond_the_cursor_jumps_and_does_not_hang() -> None:
    """The next event does not fit: that tells the client to open again."""
    old = await Journal(Disk()).told(*["x" * 1000] * 300)
    journal = await old.forgotten()
    async with desk() as d:
        d.wire.stall()
        view = d.view(journal)
        await settle()
        assert 0 < view.position < 200
        journal.log.trim(200)
        await journal.commit()
        d.wire.flow()
        await settle()
        d.wire.flow()
        await settle()
        got = numbers(d.got())
        assert got[-1] == 300
        assert 201 in got


async def test_a_request_to_run_a_tool_waits_until_the_call_is_stored() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        await settle()
        d.got()
        journal.say("the call")
        view.request_tool(
            ToolRequest(
                conversation="c",
                turn=1,
                call="k",
                name="t",
                arguments={},
                deadline_ms=1000,
                redelivered=False,
            )
        )
        await settle()
        assert d.got() == []
        await journal.commit()
        await settle()
        assert [frame["type"] for frame in d.got()] == ["tool_request", "delta"]


async def test_waiting_is_shown_at_once() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        journal.say("not stored")
        view.show_waiting(
            Waiting(conversation="c", turn=1, phase="connecting", elapsed_ms=10)
        )
        await settle()
        assert d.got()[0]["type"] == "waiting"


@pytest.mark.parametrize("stored", [True, False])
async def test_a_deleted_log_is_reported_once_and_not_read(stored: bool) -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        view = d.view(journal)
        await settle()
        d.got()
        journal.say("b")
        if stored:
            await journal.commit()
        reads = journal.reads
        journal.log.delete()
        await settle()
        assert d.deleted == [], "a crash may bring it back"
        journal.log.go()
        await settle()
        view.wake()
        await settle()
        assert d.deleted == [view]
        assert journal.reads == reads
        assert d.got() == []


async def test_a_closed_view_sends_nothing_and_is_not_woken() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        await settle()
        d.got()
        view.close()
        await journal.told("a")
        with anyio.move_on_after(0.01):
            await settle()
        assert d.got() == []
        assert not journal.log._wakes
