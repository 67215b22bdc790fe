"""Views of a log that is trimmed beyond their cursors.

What comes next does not fit, which makes the client open again. Where nothing comes,
a `caught_up` beyond what the client has says the same.
"""

from typing import Any

import anyio
import pytest

from tests.connections.gathered import DELAY, TICK
from tests.connections.journal import Desk, Disk, Journal, desk, numbers, settle
from tests.fakes.clocks import virtual_time  # noqa: F401 - a fixture
from wsserver.connections.gates import Held
from wsserver.connections.gathering import QUIET_SECONDS
from wsserver.connections.viewer import BLOCK_BYTES

CAUGHT_UP_AT_10 = {"type": "caught_up", "conversation": "c", "seq": 10}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"frames": True},
    {"window_bytes": 1024},
    {"max_delay_seconds": 0.0},
    {"max_delay_seconds": DELAY},
]
with_options = pytest.mark.parametrize("options", OPTIONS, ids=str)


async def ten(disk: Disk) -> Journal:
    """Returns a log of ten numbers, none of them in memory."""
    return await (await Journal(disk).told(*"abcdefghij")).forgotten()


async def trim(journal: Journal, through: int) -> None:
    journal.log.trim(through)
    await journal.commit()


async def all_that_comes(d: Desk) -> list[dict[str, Any]]:
    await settle()
    await anyio.sleep(DELAY + QUIET_SECONDS + TICK)
    await settle()
    return d.got()


@with_options
@pytest.mark.parametrize("in_memory", [True, False])
async def test_what_came_while_a_trim_passed_a_fetch_is_sent(
    in_memory: bool, options: dict[str, Any]
) -> None:
    disk = Disk()
    journal = await ten(disk)
    slow = disk.slow[journal.log.key] = anyio.Event()
    async with desk() as d:
        d.view(journal, **options)
        await settle()
        await journal.told("k", "l")
        if not in_memory:
            await journal.leave_memory()
        await trim(journal, 10)
        slow.set()
        frames = await all_that_comes(d)
        assert numbers(frames) == [11, 12], "the gap shows"
        assert [f["type"] for f in frames].count("caught_up") == 1


@with_options
async def test_a_replay_is_over_where_all_of_it_was_trimmed(
    options: dict[str, Any],
) -> None:
    disk = Disk()
    journal = await ten(disk)
    slow = disk.slow[journal.log.key] = anyio.Event()
    async with desk() as d:
        d.view(journal, **options)
        await settle()
        await trim(journal, 10)
        slow.set()
        assert await all_that_comes(d) == [CAUGHT_UP_AT_10]
        assert len(disk.reads) <= 2


@with_options
async def test_who_follows_and_lags_learns_that_all_it_lacks_was_trimmed(
    options: dict[str, Any],
) -> None:
    journal = await Journal(Disk()).told(*"abc")
    async with desk() as d:
        view = d.view(journal, **options)
        assert numbers(await all_that_comes(d)) == [1, 2, 3]
        d.fill()
        await settle()
        await journal.told(*"defghij")
        await journal.leave_memory()
        await trim(journal, 10)
        d.wire.flow()
        frames = [f for f in await all_that_comes(d) if f["type"] != "filler"]
        assert frames == [CAUGHT_UP_AT_10]
        view.ack(view.position)
        view.wake()
        assert await all_that_comes(d) == [], "once"
        await journal.told("k")
        assert numbers(await all_that_comes(d)) == [11], "the gap shows"


async def test_an_ack_lets_it_know_whose_window_was_full() -> None:
    journal = await Journal(Disk()).told(*["x" * 200] * 10)
    async with desk() as d:
        view = d.view(journal, frames=True, window_bytes=1024)
        await settle()
        seen = numbers(d.got())[-1]
        await journal.leave_memory()
        await trim(journal, 10)
        await settle()
        assert d.got() == []
        view.ack(seen)
        await settle()
        assert d.got() == [CAUGHT_UP_AT_10]


@with_options
async def test_a_reply_that_waits_for_what_was_trimmed_leaves(
    options: dict[str, Any],
) -> None:
    disk = Disk()
    journal = await ten(disk)
    slow = disk.slow[journal.log.key] = anyio.Event()
    async with desk() as d:
        view = d.view(journal, **options)
        await settle()
        view.flush(8)
        reply = Held(
            frame=b'{"type":"reply"}', changes=0, re="r", view=view, sent_through=8
        )
        d.writer.gates.hold(journal.log, reply)
        await settle()
        assert d.got() == []
        await trim(journal, 10)
        slow.set()
        frames = await all_that_comes(d)
        assert sorted(f["type"] for f in frames) == ["caught_up", "reply"]


async def test_text_that_went_on_in_what_was_trimmed_is_sent_as_it_is() -> None:
    disk = Disk()
    old = await Journal(disk).told("a ", "👨")
    await old.told("\u200d👩" + "x" * BLOCK_BYTES)
    journal = await old.forgotten()
    async with desk() as d:
        first = disk.slow[journal.log.key] = anyio.Event()
        d.view(journal, max_delay_seconds=DELAY)
        await settle()
        second = disk.slow[journal.log.key] = anyio.Event()
        first.set()
        await settle()
        assert len(disk.reads) == 2, "what goes on with the block"
        await trim(journal, 3)
        second.set()
        frames = await all_that_comes(d)
        assert len(disk.reads) <= 3
        assert numbers(frames) == [1, 2]
        assert frames[-1] == {"type": "caught_up", "conversation": "c", "seq": 3}


async def test_text_that_is_held_when_it_is_trimmed() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        d.view(journal, max_delay_seconds=DELAY)
        await settle()
        d.got()
        await journal.told("b")
        await journal.leave_memory()
        await trim(journal, 2)
        assert await all_that_comes(d) == [
            {"type": "caught_up", "conversation": "c", "seq": 2}
        ]


async def test_a_store_that_lost_rows_is_not_asked_for_ever() -> None:
    disk = Disk()
    journal = await ten(disk)
    disk._kept[journal.log.key].rows.clear()
    async with desk() as d:
        d.view(journal)
        await all_that_comes(d)
        assert len(disk.reads) == 1
        slow = disk.slow[journal.log.key] = anyio.Event()
        d.view(journal)
        await settle()
        journal.log.trim(5)
        slow.set()
        assert CAUGHT_UP_AT_10 not in await all_that_comes(d)
        assert len(disk.reads) < 5
