"""What every store does about what is old, idle or live."""

from typing import Any

import pytest

from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    done,
    meta,
    receipt,
    tokens,
)
from wsserver.log.store import RECEIPTS_KEPT, RECEIPTS_KEPT_SECONDS, Store, Write


@pytest.fixture
def anyio_backend(case: tuple[str, Any]) -> Any:
    return case[1]


async def test_live_conversations_are_found(store: Store) -> None:
    await store.commit(
        [
            Write(key=KEY, meta=meta(0, live=True)),
            Write(key=OTHER, meta=meta(0, live=False)),
        ],
        NOW,
    )
    assert await store.live() == [KEY]

    await store.commit(
        [
            Write(key=KEY, meta=meta(0, live=False)),
            Write(key=OTHER, meta=meta(0, live=True)),
        ],
        NOW,
    )
    assert await store.live() == [OTHER]


async def test_idle_conversations_are_found_the_longest_idle_first(
    store: Store,
) -> None:
    for age, key in ((3, "a/3"), (5, "a/5"), (1, "a/1"), (4, "a/4")):
        live = key == "a/4"
        await store.commit([Write(key=key, meta=meta(0, live=live))], NOW - age)

    assert await store.idle(NOW - 1, 10) == ["a/5", "a/3"]
    assert await store.idle(NOW, 10) == ["a/5", "a/3", "a/1"]
    assert await store.idle(NOW, 1) == ["a/5"]

    await store.commit([Write(key="a/5", meta=meta(0))], NOW)
    assert await store.idle(NOW, 1) == ["a/3"]


@pytest.mark.parametrize(
    ("before", "keep_bytes", "point"),
    [
        pytest.param(NOW + 1, ALL, 0, id="nothing is old"),
        pytest.param(NOW + 10, ALL, 0, id="the first turn is just not old"),
        pytest.param(NOW + 11, ALL, 3, id="the first turn is old"),
        pytest.param(NOW + 31, ALL, 3, id="the second is old but for its end"),
        pytest.param(NOW + 41, ALL, 7, id="both are old"),
        pytest.param(NOW + 99, ALL, 7, id="the running turn never goes"),
        pytest.param(NOW, 0, 7, id="no bytes are kept"),
        pytest.param(NOW, 3, 7, id="the newest row suffices"),
        pytest.param(NOW, 4, 3, id="the row before it is needed"),
        pytest.param(NOW, 27, 3, id="the second turn is needed"),
        pytest.param(NOW, 28, 0, id="part of the first turn is needed"),
    ],
)
async def test_trim_point(
    store: Store, before: float, keep_bytes: int, point: int
) -> None:
    rows = [
        ([*tokens(1, 2), done(3)], NOW + 10),
        (tokens(4, 5, turn=4), NOW + 20),
        ([*tokens(6, 6, turn=4), done(7, turn=4)], NOW + 40),
        (tokens(8, 8, turn=8), NOW + 50),
    ]
    assert sum(len(entry.body) for row, _ in rows[1:] for entry in row) == 27
    for entries, at in rows:
        await store.commit([appending(entries)], at)

    assert await store.trim_point(KEY, before, keep_bytes) == point


async def test_newer_receipts_and_at_least_some_of_each_principal(
    store: Store,
) -> None:
    annas = [receipt(f"a{age}", NOW - age) for age in (9, 7, 5, 3, 1)]
    bobs = [receipt(f"a{age}", NOW - age, "bob") for age in (100, 90, 80)]
    for given in sorted(annas + bobs, key=lambda given: given.at):
        await store.commit([Write(key=KEY, meta=meta(0), receipts=[given])], NOW)

    assert await store.receipts(KEY, NOW - 5, 0) == annas[2:]
    assert await store.receipts(KEY, NOW - 5, 2) == bobs[1:] + annas[2:]
    assert await store.receipts(KEY, NOW - 5, 4) == bobs + annas[1:]
    assert await store.receipts(KEY, NOW + 1, 1) == [bobs[2], annas[4]]


async def test_a_receipt_takes_the_place_of_one_with_the_same_id(
    store: Store,
) -> None:
    old, other, new = receipt("r", NOW), receipt("s", NOW + 1), receipt("r", NOW + 2)
    for given in (old, other, new):
        await store.commit([Write(key=KEY, meta=meta(0), receipts=[given])], NOW)

    assert await store.receipts(KEY, 0, 10) == [other, new]


async def test_old_receipts_go_once_there_are_enough_newer_ones(
    store: Store,
) -> None:
    old = [receipt(f"old{n}", NOW + n) for n in range(20)]
    await store.commit([Write(key=KEY, meta=meta(0), receipts=old)], NOW + 20)
    later = NOW + 10 + RECEIPTS_KEPT_SECONDS
    new = [receipt(f"new{n}", later) for n in range(RECEIPTS_KEPT - 5)]
    other = receipt("old0", NOW, "bob")

    await store.commit([Write(key=KEY, meta=meta(0), receipts=[*new, other])], later)
    everything = await store.receipts(KEY, 0, ALL)

    assert everything[1:] == old[10:] + new, "old0 ... old9 are too old and too many"
    assert everything[0] == other, "principals are counted apart"

    much_later = later + RECEIPTS_KEPT_SECONDS + 1
    one_more = receipt("one more", much_later)
    await store.commit([Write(key=KEY, meta=meta(0), receipts=[one_more])], much_later)
    everything = await store.receipts(KEY, 0, ALL)
    assert everything[1:] == [*old[16:], *new, one_more]
