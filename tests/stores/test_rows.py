"""How entries are cut into rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.samples import NOW, appending, done, meta, tokens
from wsserver.log.entry import Entry, text_entry
from wsserver.log.store import Write
from wsserver.stores.rows import ROW_BYTES, cut, plan, take


def test_a_small_batch_is_one_row() -> None:
    (row,) = cut(tokens(3, 5), NOW)

    assert (row.first, row.last, row.at, row.bytes) == (3, 5, NOW, 9)
    assert not row.ends_turn
    assert row.entries == tokens(3, 5)


def test_a_row_ends_with_its_turn() -> None:
    rows = cut([*tokens(1, 2), done(3), done(4), *tokens(5, 6)], NOW)

    assert [(row.last, row.ends_turn) for row in rows] == [
        (3, True),
        (4, True),
        (6, False),
    ]


@given(st.lists(st.integers(0, 2 * ROW_BYTES), max_size=12))
def test_rows_stay_small(sizes: list[int]) -> None:
    entries = [
        Entry("message", seq, seq, 0, b"x" * size) for seq, size in enumerate(sizes, 1)
    ]

    rows = cut(entries, NOW)

    assert [entry for row in rows for entry in row.entries] == entries
    assert all(row.bytes <= ROW_BYTES or len(row.entries) == 1 for row in rows)


def test_what_entries_carry_beside_their_body_counts_too() -> None:
    entries = [
        Entry("delta", seq, seq, 1, b"", b"a" * 100_000, b"e" * 100_000)
        for seq in range(1, 5)
    ]

    assert len(cut(entries, NOW)) == 4


def test_a_write_names_the_stored_rows_that_go() -> None:
    new = tokens(7, 9)

    assert plan(appending(new), NOW).dropped is None
    assert plan(appending(new, compacted=new), NOW).dropped is None
    assert plan(appending(new, compacted=tokens(4, 9)), NOW).dropped == (4, 6)
    only_old = Write(key="a/1", meta=meta(9), compacted=tokens(2, 5))
    assert plan(only_old, NOW).dropped == (2, 5)


def test_entries_around_a_compaction_keep_rows_of_their_own() -> None:
    change = plan(appending(tokens(1, 9), compacted=tokens(4, 6)), NOW)

    assert change.appended == 1
    assert [(row.first, row.last) for row in change.rows] == [(1, 3), (4, 6), (7, 9)]


def test_a_head_that_is_not_the_newest_entry_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="head"):
        plan(Write(key="a/1", meta=meta(4), entries=tokens(1, 3)), NOW)


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(0, 9), st.integers(0, 30))
def test_taking_stops_before_the_bytes_are_exceeded(
    sizes: list[int], after: int, most: int
) -> None:
    entries = [text_entry("delta", seq, 1, "x" * n) for seq, n in enumerate(sizes, 1)]

    taken = take(entries, after, most)

    assert taken == entries[after : after + len(taken)]
    size = sum(len(entry.body) for entry in taken)
    assert size <= most or len(taken) == 1
    left = entries[after + len(taken) :]
    assert not left or (taken and size + len(left[0].body) > most)
