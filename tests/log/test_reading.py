"""Reads of a log that a trim overtakes."""

from collections.abc import Awaitable, Callable

import pytest

from tests.fakes.faulty import FaultyStore
from tests.log.made import NEW, Made
from tests.log.numbers import numbers
from wsserver.log.entry import Entry
from wsserver.log.reading import read_whole

Happens = Callable[[], Awaitable[None]]


class Overtaken(FaultyStore):
    """Lets something happen before it looks, or before what it saw arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before: dict[int, Happens] = {}
        self.after: dict[int, Happens] = {}

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self.reads += 1
        number = self.reads
        if number in self.before:
            await self.before[number]()
        rows = await super().read(key, after, max_bytes)
        if number in self.after:
            await self.after[number]()
        return rows


class Story:
    """A log of ten numbers that only the store has, one in a row."""

    def __init__(self) -> None:
        self.store = Overtaken()
        self.made = Made(self.store, NEW)

    async def begin(self) -> "Story":
        for _ in range(10):
            self.made.say(1)
            await self.made.commit()
        self.made = await self.made.again()
        return self

    async def trim(self) -> None:
        self.made.log.trim(10)
        await self.made.commit()

    async def go_on(self) -> None:
        """Two more numbers, which leave memory at once."""
        self.made.say(2)
        self.made.log.keep_from(13)
        self.made.log.compact_soon()
        await self.made.commit()
        assert self.made.log.tail(1) == []

    async def trim_and_go_on(self) -> None:
        await self.trim()
        await self.go_on()

    async def go_on_and_trim(self) -> None:
        await self.go_on()
        await self.trim()


STORIES = [
    (Story.trim, []),
    (Story.trim_and_go_on, [11, 12]),
    (Story.go_on_and_trim, [11, 12]),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("happens", "left"), STORIES)
async def test_a_read_that_a_trim_overtakes_gets_what_was_read_or_what_is_left(
    when: str, happens: Callable[[Story], Awaitable[None]], left: list[int]
) -> None:
    story = await Story().begin()
    getattr(story.store, when)[1] = lambda: happens(story)
    found = sorted(numbers(await story.made.log.fetch(3, 10**6)))
    assert found == (left if when == "before" else [4, 5, 6, 7, 8, 9, 10])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("happens", "left"), STORIES)
@pytest.mark.parametrize("read", [1, 2, 5])
async def test_all_of_a_log_has_no_gap_wherever_a_trim_overtakes_it(
    when: str,
    happens: Callable[[Story], Awaitable[None]],
    left: list[int],
    read: int,
) -> None:
    story = await Story().begin()
    getattr(story.store, when)[read] = lambda: happens(story)
    found = sorted(numbers(await read_whole(story.made.log, max_bytes=1)))
    assert found == left


async def test_a_store_that_lost_rows_is_asked_once() -> None:
    story = await Story().begin()
    story.store._kept.clear()
    assert await story.made.log.fetch(3, 10**6) == []
    assert story.store.reads == 1
