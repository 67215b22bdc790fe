"""Merging never changes what anyone reads."""

from itertools import pairwise

import orjson
from hypothesis import given
from hypothesis import strategies as st

from protocol.events import LogEvent, TextEvent, ToolDeltaEvent, first_seq
from protocol.fold import fold
from protocol.merge import merge
from tests.protocol.logs import logs, merged_somehow, one_turn


@given(events=logs(), data=st.data())
def test_merging_does_not_change_the_fold(
    events: list[LogEvent], data: st.DataObject
) -> None:
    plain = fold(events)
    assert fold(merge(events)) == plain
    merged = data.draw(merged_somehow(events))
    assert fold(merged) == plain
    assert fold(merge(merged)) == plain
    assert merge(merge(events)) == merge(events)
    assert all(turn.proven for turn in plain.turns.values())


@given(events=logs())
def test_merged_frames_cover_the_same_numbers(events: list[LogEvent]) -> None:
    merged = merge(events)
    for one, following in pairwise(merged):
        assert first_seq(following) == one.seq + 1
    if events:
        assert (first_seq(merged[0]), merged[-1].seq) == (1, events[-1].seq)
    for one, following in pairwise(merged):
        alike = type(one) is type(following) and isinstance(one, TextEvent)
        same_turn = alike and one.turn == following.turn  # type: ignore[union-attr]
        assert not same_turn or isinstance(one, ToolDeltaEvent)


def test_merging_keeps_to_its_size_and_to_one_call() -> None:
    log = one_turn(*"ab" * 4, '"' * 3, "x" * 20)
    texts = [e.text for e in merge(log.events, max_bytes=6) if isinstance(e, TextEvent)]
    assert texts == ["ababab", "ab", '"""', "x" * 20]
    assert all(len(orjson.dumps(text)) <= 8 for text in texts[:-1])
    log = one_turn()
    for call in ("k", "k", "l", "k"):
        log.of_turn(ToolDeltaEvent, call=call, name="t", text="x")
    found = [(e.first, e.seq, e.call) for e in merge(log.events)[2:]]  # type: ignore[union-attr]
    assert found == [(3, 4, "k"), (None, 5, "l"), (None, 6, "k")]


def test_text_with_a_gap_between_is_not_joined() -> None:
    events = one_turn("a", "b", "c").events
    assert merge([events[2], events[4]]) == [events[2], events[4]]
