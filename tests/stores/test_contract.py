"""What every store does: the contract of `wsserver.log.store.Store`."""

from typing import Any

import anyio
import pytest

from tests.stores.samples import (
    ALL,
    KEY,
    NOW,
    OTHER,
    appending,
    compacting,
    done,
    meta,
    only,
    receipt,
    tokens,
)
from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, MisfitError, Store, Write


@pytest.fixture
def anyio_backend(case: tuple[str, Any]) -> Any:
    return case[1]


async def kept(store: Store, key: str = KEY) -> list[Entry]:
    return await store.read(key, 0, ALL)


async def test_of_an_unknown_conversation_nothing_is_kept(store: Store) -> None:
    assert await store.meta(KEY) is None
    assert await store.read(KEY, 0, ALL) == []
    assert await store.receipts(KEY, 0, 10) == []
    assert await store.trim_point(KEY, NOW, 0) == 0
    assert await store.live() == []
    assert await store.idle(NOW, 10) == []
    assert await store.count("anna") == 0


async def test_what_was_committed_is_read_back_as_it_was(store: Store) -> None:
    entries = [
        Entry("message", 1, 1, 0, b'{"type":"message","x":"\xc3\xa9"}'),
        text_entry("delta", 2, 1, 'quote " NUL \0 \u2028 \U0001f469'),
        text_entry("tool_delta", 3, 1, "{", b'"call":"c","name":"f",'),
        text_entry("reasoning", 4, 1, ""),
        done(5),
    ]
    given = receipt("r1", NOW)

    await store.commit([appending(entries, receipts=[given])], NOW)

    assert await kept(store) == entries
    assert await store.meta(KEY) == meta(5)
    assert await store.receipts(KEY, 0, 10) == [given]


@pytest.mark.parametrize("count", [1, 15, 16, 255, 256, 70_000])
async def test_a_commit_may_be_small_or_large(store: Store, count: int) -> None:
    await store.commit([appending(tokens(1, count))], NOW)
    await store.commit([appending(tokens(count + 1, count + 2))], NOW)

    assert await kept(store) == tokens(1, count + 2)


async def test_reading_starts_behind_the_position(store: Store) -> None:
    for first in (1, 4, 7):
        await store.commit([appending(tokens(first, first + 2))], NOW)

    for after in range(10):
        assert await store.read(KEY, after, ALL) == tokens(after + 1, 9)


async def test_reading_stops_before_it_exceeds_the_bytes(store: Store) -> None:
    await store.commit([appending(tokens(1, 4))], NOW)
    await store.commit([appending(tokens(5, 8))], NOW)

    assert await store.read(KEY, 0, 9) == tokens(1, 3)
    assert await store.read(KEY, 0, 8) == tokens(1, 2)
    assert await store.read(KEY, 3, 0) == tokens(4, 4), "but one entry it returns"


async def test_a_whole_conversation_is_read_in_pieces(store: Store) -> None:
    for first in range(1, 100, 9):
        await store.commit([appending(tokens(first, first + 8))], NOW)
    read: list[Entry] = []

    while batch := await store.read(KEY, read[-1].seq if read else 0, 50):
        read += batch

    assert read == tokens(1, 99)


async def test_an_empty_state_is_kept_too(store: Store) -> None:
    empty = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")

    await store.commit([Write(key=KEY, meta=empty)], NOW)

    assert await store.meta(KEY) == empty
    assert await kept(store) == []


async def test_keys_are_apart(store: Store) -> None:
    await store.commit([appending(tokens(1, 2)), appending(tokens(1, 5), OTHER)], NOW)

    assert await kept(store) == tokens(1, 2)
    assert await kept(store, OTHER) == tokens(1, 5)


@pytest.mark.parametrize("first", [1, 3, 5], ids=["again", "overlap", "hole"])
async def test_a_write_that_does_not_follow_changes_nothing_at_all(
    store: Store, first: int
) -> None:
    await store.commit([appending(tokens(1, 3))], NOW)

    with pytest.raises(MisfitError, match=KEY) as refused:
        await store.commit(
            [appending(tokens(1, 2), OTHER), appending(tokens(first, 6))], NOW
        )
    assert (refused.value.key, refused.value.compaction) == (KEY, False)

    assert await kept(store) == tokens(1, 3)
    assert await store.meta(KEY) == meta(3)
    assert await store.meta(OTHER) is None
    await store.commit([appending(tokens(4, 6))], NOW)
    assert await kept(store) == tokens(1, 6)


async def test_compaction_replaces_rows(store: Store) -> None:
    await store.commit([appending(tokens(1, 3))], NOW)
    await store.commit([appending(tokens(4, 6))], NOW)

    await store.commit([compacting(tokens(1, 6), 6)], NOW)

    assert await kept(store) == compact(tokens(1, 6))
    (entry,) = await store.read(KEY, 4, ALL)
    assert only([entry], 4) == tokens(5, 6)


async def test_compaction_takes_the_entries_of_its_own_write_along(
    store: Store,
) -> None:
    await store.commit([appending(tokens(1, 3))], NOW)
    await store.commit([appending(tokens(4, 6))], NOW)
    entries = [*tokens(7, 8), done(9)]

    await store.commit(
        [appending(entries, compacted=compact([*tokens(4, 8), done(9)]))], NOW
    )

    assert await kept(store) == [*tokens(1, 3), *compact(tokens(4, 8)), done(9)]


async def test_compaction_of_new_entries_alone(store: Store) -> None:
    entries = tokens(1, 5)

    await store.commit([appending(entries, compacted=compact(entries))], NOW)

    assert await kept(store) == compact(entries)


@pytest.mark.parametrize(("first", "last"), [(2, 6), (1, 5), (2, 5), (2, 2)])
async def test_compaction_that_would_cut_a_row_is_refused(
    store: Store, first: int, last: int
) -> None:
    entries = [*tokens(1, 5), done(6)]
    await store.commit([appending(entries[:3])], NOW)
    await store.commit([appending(entries[3:])], NOW)

    with pytest.raises(MisfitError, match=KEY) as refused:
        await store.commit([compacting(tokens(first, last), 6)], NOW)
    assert (refused.value.key, refused.value.compaction) == (KEY, True)

    assert await kept(store) == entries


async def test_large_compactions_stay_readable_in_small_pieces(store: Store) -> None:
    big = [text_entry("delta", seq, 1, str(seq) * 20_000) for seq in range(1, 40)]

    await store.commit([appending(big, compacted=compact(big))], NOW)

    read: list[Entry] = []
    while batch := await store.read(KEY, read[-1].seq if read else 0, 150_000):
        assert sum(len(entry.body) for entry in batch) <= 150_000
        read += batch
    assert only(read, 0) == big


async def test_trimming_drops_whole_rows(store: Store) -> None:
    for first in (1, 4, 7):
        await store.commit([appending(tokens(first, first + 2))], NOW)

    await store.commit([Write(key=KEY, meta=meta(9, oldest=4), trim_through=5)], NOW)

    assert await kept(store) == tokens(4, 9)
    assert await store.meta(KEY) == meta(9, oldest=4)


async def test_a_row_ends_with_a_turn_so_that_turns_can_be_trimmed(
    store: Store,
) -> None:
    turns = [*tokens(1, 2), done(3), *tokens(4, 5, turn=4), done(6, turn=4)]
    await store.commit([appending(turns)], NOW)

    await store.commit([Write(key=KEY, meta=meta(6, oldest=4), trim_through=3)], NOW)

    assert await kept(store) == turns[3:]


async def test_one_commit_may_append_compact_and_trim(store: Store) -> None:
    await store.commit([appending([*tokens(1, 2), done(3)])], NOW)
    new = [*tokens(4, 6, turn=4), done(7, turn=4)]

    await store.commit([appending(new, compacted=compact(new), trim_through=3)], NOW)

    assert await kept(store) == compact(new)


async def test_deleting_leaves_nothing(store: Store) -> None:
    await store.commit(
        [
            appending(tokens(1, 3), receipts=[receipt("r", NOW)]),
            appending(tokens(1, 2), OTHER),
        ],
        NOW,
    )

    await store.commit([Write(key=KEY, delete=True)], NOW)

    assert await store.meta(KEY) is None
    assert await kept(store) == []
    assert await store.receipts(KEY, 0, 10) == []
    assert await kept(store, OTHER) == tokens(1, 2)


async def test_deleting_what_is_not_there_is_harmless(store: Store) -> None:
    await store.commit([Write(key=KEY, delete=True)], NOW)

    assert await store.meta(KEY) is None


async def test_one_commit_may_delete_a_conversation_and_begin_it_anew(
    store: Store,
) -> None:
    await store.commit([appending(tokens(1, 9), receipts=[receipt("r", NOW)])], NOW)

    await store.commit(
        [appending(tokens(1, 2, turn=2)), Write(key=KEY, delete=True)], NOW
    )

    assert await kept(store) == tokens(1, 2, turn=2)
    assert await store.receipts(KEY, 0, 10) == []


async def test_a_commit_that_was_cancelled_happened_whole_or_not(
    store: Store,
) -> None:
    await store.commit([appending(tokens(1, 1))], NOW)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.commit(
            [appending(tokens(2, 3)), appending(tokens(1, 2), OTHER)], NOW
        )

    await store.commit([Write(key="anna/c-3", meta=meta(0))], NOW)  # behind it
    happened = await store.meta(KEY) == meta(3)
    assert happened or scope.cancelled_caught

    assert await kept(store) == tokens(1, 3 if happened else 1)
    assert await kept(store, OTHER) == (tokens(1, 2) if happened else [])


async def test_closing_twice_is_harmless(store: Store) -> None:
    await store.close()
    await store.close()


async def test_conversations_are_counted_by_their_space(store: Store) -> None:
    keys = [
        KEY,
        OTHER,
        "ann/c",
        "anna/team/c",
        "anna/team/d",
        "anna0/c",
        "anna/\xe9\U0001f469/c",
    ]
    for key in keys:
        await store.commit([appending(tokens(1, 1), key=key)], NOW)
    await store.commit([appending(tokens(2, 3))], NOW)

    async def counts() -> list[int]:
        spaces = ("anna", "ann", "anna/team", "anna0", "anna/\xe9\U0001f469", "bob")
        return [await store.count(space) for space in spaces]

    assert await counts() == [2, 1, 2, 1, 1, 0]
    gone = [Write(key=key, delete=True) for key in (KEY, "anna/team/d", "bob/none")]
    await store.commit(gone, NOW)
    assert await counts() == [1, 1, 1, 1, 1, 0]
    again = [Write(key=OTHER, delete=True), appending(tokens(1, 1))]
    await store.commit(again, NOW)
    assert await counts() == [1, 1, 1, 1, 1, 0]


async def test_a_commit_that_is_refused_counts_nothing(store: Store) -> None:
    await store.commit([appending(tokens(1, 1))], NOW)
    with pytest.raises(MisfitError):
        await store.commit(
            [appending(tokens(5, 5)), appending(tokens(1, 1), key=OTHER)], NOW
        )
    assert await store.count("anna") == 1
