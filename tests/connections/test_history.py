"""History that is no longer in memory: fetched for one view at a time, in its order."""

import anyio

from tests.connections.journal import (
    Disk,
    Journal,
    desk,
    numbers,
    settle,
    text,
)


async def test_history_comes_from_the_store_then_live_from_memory() -> None:
    words = [f"word{n} " for n in range(20_000)]
    old = await Journal(Disk()).told(*words)
    journal = await old.forgotten()
    async with desk() as d:
        d.view(journal)
        journal.say("live")
        await journal.commit()
        await settle()
        frames = d.got()
        assert text(frames) == "".join(words) + "live"
        assert numbers(frames) == list(range(1, 20_002))
        marks = [f["seq"] for f in frames if f["type"] == "caught_up"]
        assert marks == [20_000]


async def test_a_slow_store_holds_up_no_other_conversation() -> None:
    disk = Disk()
    old = await (await Journal(disk, "old").told("past")).forgotten()
    live = Journal(disk, "live")
    disk.slow["s/old"] = anyio.Event()
    async with desk() as d:
        d.view(old), d.view(live)
        await settle()
        await live.told("now")
        d.writer.push(b'{"type":"pong"}')
        await settle()
        frames = d.got()
        assert text(frames, "live") == "now"
        assert {"type": "pong"} in frames
        assert text(frames, "old") == ""
        disk.slow["s/old"].set()
        await settle()
        assert text(d.got(), "old") == "past"


async def test_a_store_that_fails_is_asked_again() -> None:
    disk = Disk()
    journal = await (await Journal(disk).told("past")).forgotten()
    disk.faults = 2
    async with desk() as d:
        d.view(journal)
        with anyio.fail_after(10):
            while not d.wire.frames:
                await d.wire.changed()
        assert text(d.got()) == "past"
        assert len(disk.reads) == 3


async def test_a_view_that_is_closed_is_not_fetched_for_again() -> None:
    disk = Disk()
    journal = await (await Journal(disk).told("past")).forgotten()
    disk.faults = 1000
    async with desk() as d:
        view = d.view(journal)
        await settle()
        view.close()
        await anyio.sleep(0.3)
        assert len(disk.reads) == 1


async def test_history_for_a_client_that_does_not_read_is_one_block() -> None:
    disk = Disk()
    journals = [
        await (await Journal(disk, f"c{n}").told(*["x" * 1000] * 400)).forgotten()
        for n in range(10)
    ]
    async with desk() as d:
        d.wire.stall()
        views = [d.view(journal) for journal in journals]
        await settle()
        await settle()
        assert sum(bool(view._block) for view in views) <= 1
        d.wire.flow()
        while any(view.position < 400 for view in views):
            await settle()
        frames = d.got()
        for n in range(10):
            assert text(frames, f"c{n}") == "x" * 400_000


async def test_a_view_closed_while_it_waits_for_history_frees_the_others() -> None:
    disk = Disk()
    first = await (await Journal(disk, "first").told("1")).forgotten()
    second = await (await Journal(disk, "second").told("2")).forgotten()
    disk.slow["s/first"] = anyio.Event()
    async with desk() as d:
        view = d.view(first)
        d.view(second)
        await settle()
        view.close()
        disk.slow["s/first"].set()
        await settle()
        frames = d.got()
        assert text(frames, "first") == ""
        assert text(frames, "second") == "2"


async def test_a_trim_beyond_what_was_to_be_replayed_holds_up_nobody() -> None:
    disk = Disk()
    journal = await Journal(disk).told(*["x" * 50] * 10)
    async with desk() as d:
        view = d.view(journal, window_bytes=200, frames=True)
        await settle()
        seen = numbers(d.got())
        assert seen
        assert seen[-1] < 9
        await journal.told(*["y" * 50] * 10)
        journal.log.compact_soon()
        journal.log.keep_from(journal.log.head + 1)
        await journal.commit()
        journal.log.trim(15)
        await journal.commit()
        view.flush(9)
        other = await (await Journal(disk, "other").told("past")).forgotten()
        d.view(other)
        await settle()
        for _ in range(20):
            view.ack(view.position)
            await settle()
        frames = d.got()
        assert numbers(frames) == [16, 17, 18, 19, 20], "the gap shows"
        assert text(frames, "other") == "past"
        marks = {f["conversation"] for f in frames if f["type"] == "caught_up"}
        assert marks == {"c", "other"}
