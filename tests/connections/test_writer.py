"""Control first, then conversations in turn, as fast as the transport takes it."""

from collections import Counter
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.merge import MAX_MERGED_BYTES
from tests.connections.journal import (
    Desk,
    Disk,
    Journal,
    desk,
    numbers,
    play,
    settle,
    text,
)

HIGH_WATER = 65_536
QUANTUM_BYTES = 16_384


async def test_what_is_stored_is_sent_and_no_more() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        d.view(journal)
        journal.say("a", "b")
        await settle()
        assert numbers(d.got()) == []
        await journal.commit()
        await settle()
        assert text(d.got()) == "ab"


async def test_one_token_is_one_frame_and_one_write() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        await settle()
        d.got()
        before = d.wire.batches
        for word in ("a", "b", "c"):
            await journal.told(word)
            await settle()
        assert d.wire.batches == before + 3
        assert [frame["seq"] for frame in d.got()] == [1, 2, 3]
        assert view.sent_through() == 3


async def test_a_wake_up_costs_one_write_for_all_that_moved() -> None:
    disk = Disk()
    journals = [Journal(disk, f"c{n}") for n in range(20)]
    async with desk() as d:
        for journal in journals:
            d.view(journal)
        await settle()
        d.got()
        before = d.wire.batches
        for journal in journals:
            journal.say("x")
            write = journal.log.take_write()
            journal.log.committed(write)
        await settle()
        assert d.wire.batches == before + 1
        assert len(d.got()) == 20


async def test_a_wake_up_looks_only_at_what_moved() -> None:
    disk = Disk()
    journals = [Journal(disk, f"c{n}") for n in range(50)]
    async with desk() as d:
        for journal in journals:
            d.view(journal)
        await settle()
        before = [journal.reads for journal in journals]
        await journals[7].told("x")
        await settle()
        after = [journal.reads for journal in journals]
        assert [n for n in range(50) if after[n] != before[n]] == [7]


async def test_a_wake_up_without_cause_sends_nothing() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        view = d.view(journal)
        await settle()
        d.got()
        before = d.wire.batches
        for _ in range(3):
            view.wake()
            await settle()
        assert d.wire.batches == before


async def test_control_frames_go_before_events() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        d.wire.stall()
        d.view(journal)
        d.writer.push(b'{"type":"pong"}')
        await settle()
        d.wire.flow()
        assert [frame["type"] for frame in d.got()] == ["pong", "delta", "caught_up"]


async def test_control_frames_wait_for_no_more_than_what_is_buffered() -> None:
    """A client that is far behind gets its pong after one mark's worth of text."""
    journal = await Journal(Disk()).told(*["x" * 1000] * 1000)
    async with desk() as d:
        d.wire.stall()
        d.view(journal)
        await settle()
        d.writer.push(b'{"type":"pong"}')
        await settle()
        d.wire.flow()
        await settle()
        before = b""
        while (frame := d.wire.frames.popleft()) != b'{"type":"pong"}':
            before += frame
        assert len(before) <= HIGH_WATER + MAX_MERGED_BYTES + QUANTUM_BYTES


async def test_a_client_that_does_not_read_costs_a_constant() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        d.wire.stall()
        for _ in range(300):
            await journal.told(*["x" * 100] * 10)
            await settle()
        assert d.wire.most_buffered <= HIGH_WATER + MAX_MERGED_BYTES + QUANTUM_BYTES
        assert view.position < 1000
        before = len(d.got())
        d.wire.flow()
        await settle()
        frames = d.got()
        assert view.position == 3000
        assert text(frames) == "x" * len(text(frames))
        assert numbers(frames)[-1] == 3000
        # Most of it was merged: it is a handful of frames, not thousands.
        assert len(frames) - before < 800


async def test_missed_tokens_are_a_handful_of_frames() -> None:
    words = [f"word{n} " for n in range(5000)]
    journal = await Journal(Disk()).told(*words)
    async with desk() as d:
        d.view(journal)
        await settle()
        frames = d.got()
        assert text(frames) == "".join(words)
        assert numbers(frames) == list(range(1, 5001))
        assert len(frames) < 10


async def test_the_cursor_stays_while_the_transport_is_full() -> None:
    journal = await Journal(Disk()).told(*["x" * 1000] * 500)
    async with desk() as d:
        d.wire.stall()
        view = d.view(journal)
        await settle()
        stopped = view.position
        assert 0 < stopped < 500
        await settle()
        assert view.position == stopped
        d.wire.drain(40_000)
        await settle()
        assert view.position == stopped, "above the low-water mark nothing is written"
        d.wire.drain()
        await settle()
        assert view.position > stopped


async def test_a_transport_that_takes_more_than_the_mark_is_believed() -> None:
    """Its own marks decide; above ours it still gets a turn at a time, not a loop."""
    journal = await Journal(Disk()).told(*["x" * 1000] * 500)
    async with desk(high_water_bytes=1000) as d:
        d.wire.stall()
        view = d.view(journal)
        await settle()
        assert d.wire.buffered_bytes() > d.wire.LOW_WATER
        assert view.position < 500
        d.wire.flow()
        await settle()
        assert text(d.got()) == "x" * 500_000


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(
    sizes=st.lists(
        st.lists(st.integers(1, 40_000), min_size=30, max_size=60),
        min_size=2,
        max_size=5,
    ),
    frames=st.booleans(),
)
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_conversations_take_turns_by_bytes(
    backend: str, sizes: list[list[int]], frames: bool
) -> None:
    """While several have something to send, none gets ahead by more than a turn."""
    play(backend, _take_turns, sizes, frames)


async def _take_turns(sizes: list[list[int]], frames: bool) -> None:
    disk = Disk()
    journals = [Journal(disk, f"c{n}") for n in range(len(sizes))]
    for journal, texts in zip(journals, sizes, strict=True):
        await journal.told(*["x" * size for size in texts])
    async with desk() as d:
        d.wire.stall()
        views = [d.view(journal, frames=frames) for journal in journals]
        sent = dict.fromkeys((j.log.conversation for j in journals), 0)
        while True:
            await settle()
            d.wire.drain()
            for frame in d.got():
                if frame["type"] == "delta":
                    sent[frame["conversation"]] += len(frame["text"])
            if any(view.position == view.log.stored for view in views):
                break
            slack = QUANTUM_BYTES + MAX_MERGED_BYTES
            assert max(sent.values()) - min(sent.values()) <= slack


async def test_a_write_holds_a_turn_of_each_conversation() -> None:
    disk = Disk()
    journals = [Journal(disk, name) for name in ("a", "b", "c")]
    for journal in journals:
        await journal.told(*["x" * 1000] * 200)
    async with desk() as d:
        d.wire.stall()
        for journal in journals:
            d.view(journal, frames=True)
        await settle()
        d.wire.drain()
        sent = Counter(f["conversation"] for f in d.got() if f["type"] == "delta")
        assert sent.total() > 40
        assert len(sent) == 3
        assert max(sent.values()) - min(sent.values()) <= QUANTUM_BYTES // 1000 + 1


async def test_a_large_frame_is_paid_for() -> None:
    """One conversation with a huge event does not outrun one with small ones."""
    disk = Disk()
    big, small = Journal(disk, "big"), Journal(disk, "small")
    await big.told(*["x" * 100_000] * 10)
    await small.told(*["y" * 1000] * 1000)
    async with desk() as d:
        d.wire.stall()
        d.view(big), d.view(small)
        sent = {"big": 0, "small": 0}
        for _ in range(12):
            await settle()
            d.wire.drain()
            for frame in d.got():
                if frame["type"] == "delta":
                    sent[frame["conversation"]] += len(frame["text"])
        assert abs(sent["big"] - sent["small"]) <= 100_000 + 2 * QUANTUM_BYTES


async def test_a_log_that_gives_nothing_though_it_says_so_stops_nobody() -> None:
    disk = Disk()
    broken, fine = Journal(disk, "broken"), Journal(disk, "fine")
    async with desk() as d:
        d.view(broken), d.view(fine)
        await settle()
        broken.log.read = lambda after, max_bytes: []  # type: ignore[method-assign]
        await broken.told("x")
        await fine.told("y")
        await settle()
        assert text(d.got(), "fine") == "y"


# Ends


async def _in_pieces(d: Desk, cuts: list[int]) -> None:
    """Runs the writer, ending it after so many steps each time."""
    for steps in cuts:
        d.writer.begin()
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        if steps % 3 == 0:
            d.wire.drain(20_000)
        d.writer.end()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(
    cuts=st.lists(st.integers(0, 6), max_size=40),
    texts=st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3000)), max_size=40),
    old=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_ending_the_writer_anywhere_loses_and_repeats_nothing(
    backend: str, cuts: list[int], texts: list[tuple[int, str]], old: bool
) -> None:
    play(backend, _ended, cuts, texts, old)


async def _ended(cuts: list[int], texts: list[tuple[int, str]], old: bool) -> None:
    disk = Disk()
    journals = [Journal(disk, f"c{n}") for n in range(4)]
    for n, words in texts:
        journals[n].say(words)
    for journal in journals:
        await journal.commit()
    if old:
        journals = [await journal.forgotten() for journal in journals]
    async with anyio.create_task_group() as tasks:
        d = Desk(tasks)
        d.wire.stall()
        for journal in journals:
            d.view(journal)
        await _in_pieces(d, cuts)
        d.wire.flow()
        d.writer.begin()
        await settle()
        await settle()
        d.writer.end()
        tasks.cancel_scope.cancel()
    frames: list[dict[str, Any]] = d.got()
    for n, journal in enumerate(journals):
        assert text(frames, f"c{n}") == "".join(w for m, w in texts if m == n)
        assert numbers(frames, f"c{n}") == list(range(1, journal.log.head + 1))
        assert [f["type"] for f in frames if f.get("conversation") == f"c{n}"].count(
            "caught_up"
        ) == 1


async def test_it_waits_for_room_once_however_often_it_is_woken() -> None:
    journal = await Journal(Disk()).told("a")
    async with desk() as d:
        waits = 0
        writable = d.wire.writable

        async def counted() -> None:
            nonlocal waits
            waits += 1
            await writable()

        d.wire.writable = counted  # type: ignore[method-assign]
        d.fill()
        await settle()
        for _ in range(5):
            await journal.told("b")
            d.view(journal)
            d.writer.push(b'{"type":"pong"}')
            await settle()
        assert waits == 1
        d.wire.flow()
        await settle()
        assert [frame["type"] for frame in d.got()].count("pong") == 5
