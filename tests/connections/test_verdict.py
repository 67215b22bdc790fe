"""The Resume table of the protocol, row by row and at its edges."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from protocol.ids import MAX_SEQ
from wsserver.connections.verdict import Cursor, Verdict, read_cursor, verdict
from wsserver.turns.errors import CommandError


def judge(
    after: int, epoch: str | None = "e", *, head: int = 10, oldest: int = 4
) -> Any:
    found = verdict(
        Cursor(after=after, epoch=epoch), epoch="e", head=head, oldest=oldest
    )
    return found.outcome, found.after, found.reason


def test_no_cursor_replays_all_that_is_kept() -> None:
    found = verdict(None, epoch="e", head=10, oldest=4)
    assert found == Verdict(outcome="replay", after=3)


@pytest.mark.parametrize("after", [3, 4, 9, 10])
def test_a_cursor_that_fits_goes_on_from_there(after: int) -> None:
    assert judge(after) == ("replay", after, None)


def test_older_than_what_is_kept() -> None:
    assert judge(2) == ("reset", 3, "expired")
    assert judge(0) == ("reset", 3, "expired")


def test_ahead_of_the_log() -> None:
    assert judge(11) == ("reset", 3, "seq_ahead")
    assert judge(MAX_SEQ) == ("reset", 3, "seq_ahead")


@pytest.mark.parametrize("after", [0, 5, 10, 11])
def test_of_another_epoch(after: int) -> None:
    assert judge(after, "other") == ("reset", 3, "epoch_changed")


def test_without_an_epoch_it_is_taken_for_the_logs() -> None:
    assert judge(5, None) == ("replay", 5, None)
    assert judge(11, None) == ("reset", 3, "seq_ahead")


def test_an_empty_log() -> None:
    assert judge(0, head=0, oldest=1) == ("replay", 0, None)
    assert judge(1, head=0, oldest=1) == ("reset", 0, "seq_ahead")


def test_a_log_of_which_nothing_is_kept() -> None:
    assert judge(10, head=10, oldest=11) == ("replay", 10, None)
    assert judge(9, head=10, oldest=11) == ("reset", 10, "expired")


@given(
    st.none() | st.integers(0, 30),
    st.sampled_from(["e", "x", None]),
    st.integers(0, 20),
    st.data(),
)
def test_what_follows_is_always_contiguous_and_kept(
    after: int | None, epoch: str | None, head: int, data: st.DataObject
) -> None:
    oldest = data.draw(st.integers(1, head + 1))
    cursor = None if after is None else Cursor(after=after, epoch=epoch)
    found = verdict(cursor, epoch="e", head=head, oldest=oldest)
    assert oldest - 1 <= found.after <= head
    assert (found.outcome == "reset") == (found.reason is not None)
    if found.outcome == "replay" and after is not None:
        assert found.after == after
    else:
        assert found.after == oldest - 1


@pytest.mark.parametrize(
    "after", [-1, 2**53, 10**30, 1.5, 5.0, "3", "", None, True, False, [], {}, [1]]
)
def test_what_is_no_cursor(after: Any) -> None:
    with pytest.raises(CommandError) as caught:
        read_cursor(after, "e")
    assert (caught.value.body.code, caught.value.body.param) == (
        "bad_cursor",
        "$.after",
    )


@pytest.mark.parametrize("after", [0, 1, MAX_SEQ])
def test_what_is_one(after: int) -> None:
    assert read_cursor(after, "e") == Cursor(after=after, epoch="e")
    assert read_cursor(after, None) == Cursor(after=after, epoch=None)


def test_an_epoch_alone_is_none() -> None:
    assert read_cursor(UNSET, "e") is None
