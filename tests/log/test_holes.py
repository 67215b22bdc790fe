"""A store that does not give all it was given: nothing of that passes for whole."""

from collections.abc import Callable

import pytest

from tests.fakes.faulty import FaultyStore
from tests.log.made import NEW, Made
from tests.log.numbers import numbers
from wsserver.log.entry import Entry
from wsserver.log.reading import read_whole
from wsserver.log.store import LossError

Spoil = Callable[[list[Entry]], list[Entry]]


async def ten_numbers() -> tuple[FaultyStore, Made]:
    """A log of ten numbers that only the store has, one in a row."""
    store = FaultyStore()
    made = Made(store, NEW)
    for _ in range(10):
        made.say(1)
        await made.commit()
    return store, await made.again()


@pytest.mark.parametrize(
    ("spoil", "lacks"),
    [
        (lambda rows: rows[1:], 1),
        (lambda rows: [*rows[:4], *rows[5:]], 5),
        (lambda _: [], 1),
    ],
    ids=["begin", "middle", "all"],
)
async def test_what_is_lacking_is_named(spoil: Spoil, lacks: int) -> None:
    store, made = await ten_numbers()
    store.spoil = spoil
    with pytest.raises(LossError, match=f"lacks number {lacks}$"):
        await read_whole(made.log)
    store.spoil = list
    assert sorted(numbers(await read_whole(made.log))) == list(range(1, 11))


@pytest.mark.parametrize(
    ("spoil", "number"),
    [
        (lambda rows: [*rows[:4], rows[5], rows[4], *rows[6:]], 5),
        (lambda rows: [*rows[:4], *rows[3:]], 4),
    ],
    ids=["order", "twice"],
)
async def test_what_comes_twice_or_late_is_given_to_nobody(
    spoil: Spoil, number: int
) -> None:
    store, made = await ten_numbers()
    store.spoil = spoil
    told = f"gives number {number} twice or late$"
    with pytest.raises(LossError, match=told):
        await made.log.fetch(0, 10**6)
    with pytest.raises(LossError, match=told):
        await read_whole(made.log)
    await made.log.load_tail(1)
    assert not made.log.remembers(10)
    store.spoil = list
    assert sorted(numbers(await read_whole(made.log))) == list(range(1, 11))


async def test_what_is_lacking_at_the_end_is_named_where_it_begins() -> None:
    store, made = await ten_numbers()
    store.spoil = lambda rows: [row for row in rows if row.seq < 9]
    with pytest.raises(LossError, match=r"lacks number 9$"):
        await read_whole(made.log)


async def test_a_tail_with_a_hole_is_no_tail() -> None:
    store, made = await ten_numbers()
    store.spoil = lambda rows: [row for row in rows if row.seq != 7]
    await made.log.load_tail(5)
    assert not made.log.remembers(10)


async def test_what_was_deleted_meanwhile_is_not_lacking() -> None:
    store, made = await ten_numbers()
    made.log.delete()
    store.spoil = lambda _: []
    assert await read_whole(made.log) == []
