"""The log in memory: numbering, visibility, what stays and what goes."""

import anyio
import msgspec
import pytest

from protocol.content import Config
from protocol.events import ConfigEvent, DeltaEvent, UsageEvent
from protocol.merge import MAX_MERGED_BYTES
from tests.fakes.faulty import FaultyStore
from tests.log.made import USAGE, Made, made, receipt
from tests.log.numbers import numbers
from wsserver.log.conversation_log import (
    IDLE_TAIL_BYTES,
    SEAL_AFTER,
)
from wsserver.log.entry import Entry
from wsserver.log.reading import read_whole
from wsserver.log.store import Meta, StoreError
from wsserver.log.waiting import until_stored


def test_an_event_is_numbered_and_encoded_once() -> None:
    log = made(durable=False).log
    event = log.append(UsageEvent, turn=1, **USAGE)
    assert (event.conversation, event.seq, log.head) == ("c", 1, 1)
    [entry] = log.read(0, 99) or []
    assert msgspec.json.decode(entry.body, type=UsageEvent) == event
    assert (entry.kind, entry.turn) == ("usage", 1)
    assert log.read(0, 99) == log.tail(1)
    assert (log.read(0, 99) or [])[0] is entry, "encoded once, however many read it"


def test_text_is_cut_where_a_frame_would_be_too_long() -> None:
    log = made(durable=False).log
    text = "日本🎌\n" * 40_000
    log.append_text("delta", 1, text)
    entries = log.read(0, 10**9) or []
    assert log.head == len(entries) > 1
    assert all(len(entry.body) <= MAX_MERGED_BYTES for entry in entries)
    assert "".join(entry.text() for entry in entries) == text
    frame = msgspec.json.decode(entries[0].frame(b'"c"'), type=DeltaEvent)
    assert (frame.seq, frame.first) == (1, None)


async def test_followers_of_a_durable_log_are_woken_once_per_commit() -> None:
    m = made()
    m.say(5)
    assert (m.woken, m.log.stored, m.log.read(0, 99)) == (0, 0, [])
    assert m.dirty == 1
    write = m.log.take_write()
    m.say(2)
    assert m.dirty == 2, "what came in meanwhile is for the next commit"
    await m.store.commit([write], 0.0)
    assert m.log.read(0, 99) == []
    m.log.committed(write)
    assert (m.woken, m.log.stored) == (1, 5)
    assert sorted(numbers(m.log.read(0, 999) or [])) == [1, 2, 3, 4, 5]
    assert not m.log.clean
    await m.commit()
    assert (m.woken, m.log.stored, m.log.clean) == (2, 7, True)
    m.log.touch()
    assert m.log.settled < m.log.changes
    await m.commit()
    assert m.woken == 3, "a reply may wait for what has no number"
    assert m.log.settled == m.log.changes


def test_followers_of_a_log_that_is_not_durable_are_woken_at_once() -> None:
    m = made(durable=False)
    m.say(3)
    assert (m.woken, m.log.stored) == (3, 3)


async def test_a_failed_commit_loses_nothing() -> None:
    m = made()
    m.say(3)
    m.log.take_write()
    m.log.not_committed()
    m.say(2)
    assert not m.log.clean
    await m.commit()
    assert sorted(numbers(await m.store.read("s/c", 0, 10**9))) == [1, 2, 3, 4, 5]


async def test_what_comes_while_a_commit_runs_is_in_the_next_one() -> None:
    m = made()
    for turn in (1, 2):
        m.log.append(UsageEvent, turn=turn, **USAGE)
        await m.commit()
    m.log.trim(1)
    m.log.remember(receipt("one"))
    write = m.log.take_write()
    m.log.trim(2)
    m.log.remember(receipt("two"))
    await m.store.commit([write], 0.0)
    m.log.committed(write)
    assert not m.log.clean
    await m.commit()
    kept = await m.store.receipts("s/c", 0.0, 9)
    assert [one.id for one in kept] == ["one", "two"]
    assert await m.store.read("s/c", 0, 999) == []
    m.say(1)
    assert m.log.take_write().trim_through == 0, "it was done"
    assert m.log.take_write().receipts == ()


async def test_waiting_until_something_is_stored() -> None:
    m = made()
    m.say(1)
    waited: list[int] = []

    async def wait(seq: int) -> None:
        await until_stored(m.log, seq)
        waited.append(seq)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, 1)
        tasks.start_soon(wait, 2)
        await anyio.wait_all_tasks_blocked()
        assert waited == []
        await m.commit()
        await anyio.wait_all_tasks_blocked()
        assert waited == [1]
        m.log.delete()
    assert waited == [1, 2]
    assert list(m.log._wakes) == [m._wake], "nobody is left behind"


# What stays in memory


async def test_a_long_turn_stays_in_memory_as_a_few_joined_entries() -> None:
    m = made()
    most = 0
    for _ in range(500):
        m.say(40)
        await m.commit()
        most = max(most, len(m.log._tail.entries))
    assert most < 20_000 / SEAL_AFTER + SEAL_AFTER + 50
    assert len(numbers(m.log.tail(1))) == 20_000
    m.end()
    await m.commit()
    assert len(m.log._tail.entries) <= 4
    assert len(await m.store.read("s/c", 0, 10**9)) <= 4, "the rows are joined too"


async def test_the_turn_before_stays_and_older_ones_go() -> None:
    m = made()
    starts: list[int] = []
    for _ in range(4):
        starts.append(m.log.head + 1)
        m.log.keep_from(starts[-2:][0])
        m.say(3, starts[-1])
        m.end(starts[-1])
        await m.commit()
    assert m.log._tail.floor == starts[-2] - 1
    assert m.log.read(0, 10**6) is None
    assert sorted(numbers(await m.log.fetch(0, 10**6))) == list(
        range(1, m.log.head + 1)
    )
    assert numbers(await read_whole(m.log, max_bytes=10)) == numbers(
        await read_whole(m.log, max_bytes=10**6)
    )


async def test_a_turn_that_began_before_the_last_one_was_compacted_is_whole() -> None:
    m = made()
    m.say(3, 1)
    m.end(1)
    m.say(3, 5)
    await m.commit()
    for _ in range(3):
        m.say(SEAL_AFTER, 5)
        await m.commit()
    m.say(1, 5)
    m.end(5)
    await m.commit()
    held = numbers(m.log.tail(1))
    assert sorted(held) == list(range(1, m.log.head + 1))
    assert held == numbers(await m.store.read("s/c", 0, 10**9))


async def test_settings_without_turns_do_not_fill_the_memory() -> None:
    m = made()
    m.live = False
    for _ in range(60):
        m.log.append(ConfigEvent, config=Config(instructions="x" * 250_000))
        await m.commit()
        assert m.log._tail.bytes() <= IDLE_TAIL_BYTES + 300_000
    m.say(1)
    await m.commit()
    assert len(numbers(await read_whole(m.log, max_bytes=10**6))) == 61


async def test_a_turn_that_runs_stays_in_memory_however_long_it_is() -> None:
    m = made()
    m.log.keep_from(1)
    for _ in range(20):
        m.log.append_text("delta", 1, "x" * 500_000)
        await m.commit()
    assert m.log._tail.bytes() > IDLE_TAIL_BYTES
    assert m.log.tail(1)[0].first == 1


async def test_what_is_not_stored_stays_however_much_it_is() -> None:
    m = made()
    m.live = False
    for _ in range(60):
        m.log.append(ConfigEvent, config=Config(instructions="x" * 250_000))
    assert len(m.log.tail(1)) == 60
    await m.commit()
    assert m.log.tail(1) == []


# Loading, trimming, forking


async def test_a_loaded_log_goes_on_where_it_stood() -> None:
    m = made()
    m.say(5)
    await m.commit()
    again = await m.again()
    await again.log.load_tail(4)
    assert sorted(numbers(again.log.tail(1))) == [4, 5]
    again.say(1)
    again.end()
    await again.commit()
    assert sorted(numbers(await read_whole(again.log, max_bytes=1))) == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert again.log.read(2, 99) is None
    assert sorted(numbers(again.log.read(3, 9999) or [])) == [4, 5, 6, 7]


async def test_a_tail_that_the_store_has_lost_is_no_tail() -> None:
    m = Made(FaultyStore(), Meta(epoch="e", head=9, oldest=1, live=True, state=b""))
    await m.log.load_tail(5)
    assert m.log.tail(1) == []
    assert m.log.read(7, 99) is None
    m.say(1)
    assert sorted(numbers(m.log.tail(1))) == [10]


async def test_a_reader_that_a_trim_has_overtaken_gets_what_is_left() -> None:
    m = made(durable=False)
    m.say(3)
    m.end()
    await m.commit()
    again = await m.again()
    again.log.trim(4)
    again.say(1)
    assert sorted(numbers(again.log.read(0, 99) or [])) == [5]
    await again.commit()
    assert sorted(numbers(await read_whole(again.log, max_bytes=1))) == [5]


async def test_a_reader_of_what_a_trim_has_dropped_altogether_gets_nothing() -> None:
    m = made()
    m.end()
    await m.commit()
    again = await m.again()
    again.log.trim(1)
    assert again.log.read(0, 99) == []
    assert await again.log.fetch(0, 99) == []


async def test_a_trim_while_all_is_read_leaves_no_gap() -> None:
    class Slow(FaultyStore):
        async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
            found = await super().read(key, after, max_bytes)
            if after == 2:
                m.log.trim(4)
                await m.commit()
            return found

    m = Made(Slow())
    for seq in range(1, 9):
        m.log.append(UsageEvent, turn=seq, **USAGE)
        await m.commit()
    m = await m.again()
    assert max(numbers(await read_whole(m.log, max_bytes=1))) == 8
    assert (await read_whole(m.log, max_bytes=1))[0].first == 5


async def test_a_log_made_of_another_keeps_its_numbers() -> None:
    source = made()
    for turn in range(70):
        source.say(10, turn)
    await source.commit()
    copied = source.log.tail(300)
    m = Made(FaultyStore())
    m.log.adopt(copied)
    assert m.log.remembers(300)
    m.log.keep_from(690)
    assert (m.log.oldest, m.log.head) == (300, 700)
    m.say(1)
    await m.commit()
    assert sorted(numbers(await read_whole(m.log, max_bytes=1))) == list(
        range(300, 702)
    )
    assert 600 < m.log._tail.floor < 690, "it need not all stay in memory"
    m.end()
    await m.commit()
    assert sorted(numbers(await read_whole(m.log, max_bytes=1))) == list(
        range(300, 703)
    )
    part = await read_whole(m.log, 500)
    assert max(numbers(part)) == 702
    assert 490 < part[0].first <= 500 <= part[0].seq, "entries stay whole"
    empty = Made(FaultyStore())
    empty.log.adopt([])
    assert (empty.log.oldest, empty.log.head) == (1, 0)


async def test_who_reads_from_a_broken_store_is_told() -> None:
    m = made()
    m.say(5)
    await m.commit()
    again = await m.again()
    for read in (
        again.log.fetch(0, 9),
        read_whole(again.log, max_bytes=9),
        again.log.load_tail(1),
    ):
        m.store.failing_reads = 1
        with pytest.raises(StoreError):
            await read
    await again.log.load_tail(1)
    assert sorted(numbers(again.log.tail(1))) == [1, 2, 3, 4, 5]


def test_a_deleted_log_tells_who_follows_it() -> None:
    m = made()
    m.log.delete()
    assert (m.woken, m.log.deleted) == (1, True)
    m.log.unsubscribe(m._wake)
    m.log.unsubscribe(m._wake)
    m.log.delete()
    assert m.woken == 1


async def test_what_is_on_its_way_to_the_store_is_not_there_yet() -> None:
    """Not even where only the state or a receipt is: a log that left memory now
    would be loaded without it."""
    m = made()
    await m.commit()
    assert m.log.clean
    m.log.touch()
    write = m.log.take_write()
    assert not m.log.clean
    m.log.not_committed()
    assert not m.log.clean
    write = m.log.take_write()
    await m.store.commit([write], 0.0)
    m.log.committed(write)
    assert m.log.clean
