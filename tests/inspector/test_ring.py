"""The newest lines are there, the others are said to be missing."""

import anyio
from hypothesis import given
from hypothesis import strategies as st

from wsserver.inspector.ring import Ring

MOST = 10_000


@given(
    st.lists(st.integers(0, 600), max_size=80),
    st.integers(1, 4_000),
    st.integers(0, 90),
    st.integers(1, 2_000),
)
def test_a_cursor_gets_each_line_once_or_is_told(
    sizes: list[int], ring_bytes: int, position: int, batch_bytes: int
) -> None:
    ring = Ring(ring_bytes)
    for number, size in enumerate(sizes, 1):
        ring.append(b"%d:%b" % (number, b"x" * size))
        assert ring.head == number
    position = min(position, ring.head)
    expected = position + 1
    while position < ring.head:
        batch = ring.after(position, batch_bytes)
        assert batch.lines
        assert len(batch.lines) == 1 or sum(map(len, batch.lines)) <= batch_bytes
        expected += batch.missed
        for line in batch.lines:
            assert line.startswith(b"%d:" % expected)
            expected += 1
        position = batch.through
        assert position == expected - 1
    assert ring.after(position, batch_bytes).lines == []


@given(st.lists(st.integers(0, 600), min_size=1, max_size=200))
def test_its_memory_is_bounded(sizes: list[int]) -> None:
    ring = Ring(MOST)
    for size in sizes:
        ring.append(b"x" * size)
    kept = ring.after(0, 10**9)
    assert kept.missed == ring.oldest - 1
    assert sum(map(len, kept.lines)) <= MOST
    fitting = sum(size + 100 for size in sizes) <= MOST
    assert fitting == (kept.missed == 0)


async def test_a_line_wakes_all_who_wait() -> None:
    ring = Ring(MOST)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ring.wait_after, 0)
        tasks.start_soon(ring.wait_after, 1)
        await anyio.lowlevel.checkpoint()
        ring.append(b"a")
        ring.append(b"b")
    await ring.wait_after(1)
