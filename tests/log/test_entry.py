"""Entries: merging and cutting never change what anyone reads."""

from itertools import count, pairwise

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.merge import MAX_MERGED_BYTES
from wsserver.log.entry import Entry, compact, text_entry

CONVERSATION = b'"c-1"'
CALL = b'"call":"call_1","name":"f",'

# All of Unicode but surrogates, and more of what JSON escapes or encoders get wrong.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from(
        '"\\/\b\f\n\r\t\0\x1f\x7f\u0085\u2028\u2029\ufeff\U0001f469\u200d'
    ),
    min_size=1,
    max_size=12,
)
RUN = st.tuples(
    st.sampled_from(["delta", "reasoning", "tool_delta", "usage"]),
    st.sampled_from([1, 7]),
    st.lists(TEXT, min_size=1, max_size=8),
)


def single(seq: int, kind: str, turn: int, text: str) -> Entry:
    if kind == "usage":
        body = orjson.dumps({"type": "usage", "seq": seq, "note": text})
        return Entry(kind, seq, seq, turn, body)
    return text_entry(kind, seq, turn, text, CALL if kind == "tool_delta" else b"")


@st.composite
def singles(draw: st.DrawFn) -> list[Entry]:
    """Draws entries numbered in a row, mostly in runs that can be joined."""
    seqs = count(draw(st.sampled_from([1, 2, 1_000, 2**53 - 500])))
    return [
        single(next(seqs), kind, turn, text)
        for kind, turn, texts in draw(st.lists(RUN, min_size=1, max_size=5))
        for text in texts
    ]


def compacted_somehow(entries: list[Entry], data: st.DataObject) -> list[Entry]:
    """Compacts in several rounds, each over a stretch of its own, as logs do."""
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(entries)))
        end = data.draw(st.integers(begin, len(entries)))
        limit = data.draw(st.sampled_from([1, 10, 60, MAX_MERGED_BYTES]))
        entries = entries[:begin] + compact(entries[begin:end], limit) + entries[end:]
    return entries


def cut(entries: list[Entry], after: int, through: int) -> list[Entry]:
    return [
        entry.part(after, through)
        for entry in entries
        if entry.seq > after and entry.first <= through
    ]


def test_a_text_entry_is_a_whole_frame() -> None:
    entry = text_entry("delta", 8, 5, 'say "hé"\n')

    assert orjson.loads(entry.frame(CONVERSATION)) == {
        "type": "delta",
        "conversation": "c-1",
        "seq": 8,
        "turn": 5,
        "text": 'say "hé"\n',
    }


def test_the_frame_of_a_run_says_where_it_begins() -> None:
    run = [text_entry("tool_delta", seq, 5, f"[{seq}]", CALL) for seq in (8, 9, 10)]

    (joined,) = compact(run)

    assert orjson.loads(joined.frame(CONVERSATION)) == {
        "type": "tool_delta",
        "conversation": "c-1",
        "first": 8,
        "seq": 10,
        "turn": 5,
        "call": "call_1",
        "name": "f",
        "text": "[8][9][10]",
    }


def test_other_kinds_keep_their_frame_byte_for_byte() -> None:
    entry = Entry("done", 9, 9, 5, b'{"type": "done"  }')

    assert entry.frame(CONVERSATION) == b'{"type": "done"  }'


@given(st.sampled_from(["delta", "reasoning", "refusal", "tool_delta"]), TEXT)
def test_a_frame_is_strict_json_and_its_text_comes_back(kind: str, text: str) -> None:
    attrs = CALL if kind == "tool_delta" else b""

    entry = text_entry(kind, 3, 2, text, attrs)

    frame = entry.frame(CONVERSATION)
    assert orjson.loads(frame)["text"] == text  # strict: also refuses bad UTF-8
    assert msgspec.json.decode(frame)["text"] == text
    assert list(orjson.loads(frame))[-1] == "text"
    assert entry.text() == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_a_lone_surrogate_is_refused(text: str) -> None:
    with pytest.raises(TypeError):
        text_entry("delta", 1, 1, text)


@given(singles(), st.data())
def test_compaction_keeps_every_number_and_all_text(
    entries: list[Entry], data: st.DataObject
) -> None:
    joined = compacted_somehow(entries, data)

    assert joined[0].first == entries[0].first
    assert joined[-1].seq == entries[-1].seq
    assert all(
        entry.seq + 1 == following.first for entry, following in pairwise(joined)
    )
    for entry in joined:
        covered = [e for e in entries if entry.first <= e.seq <= entry.seq]
        if len(covered) == 1:
            assert entry == covered[0]
        else:
            assert {(e.kind, e.turn, e.attrs) for e in covered} == {
                (entry.kind, entry.turn, entry.attrs)
            }
            assert entry.text() == "".join([e.text() for e in covered])
            frame = orjson.loads(entry.frame(CONVERSATION))
            assert frame["text"] == entry.text()
            assert (frame["first"], frame["seq"]) == (entry.first, entry.seq)


@given(singles(), st.data())
def test_any_part_of_a_compacted_run_is_what_its_entries_are(
    entries: list[Entry], data: st.DataObject
) -> None:
    joined = compacted_somehow(entries, data)
    first, last = entries[0].first, entries[-1].seq
    after = data.draw(st.integers(first - 1, last - 1))
    through = data.draw(st.integers(after + 1, last))

    parts = cut(joined, after, through)

    assert compact(parts) == compact(cut(entries, after, through))


@given(singles(), st.data())
def test_a_part_can_be_cut_again(entries: list[Entry], data: st.DataObject) -> None:
    (joined, *_) = compact(entries)
    after = data.draw(st.integers(joined.first - 1, joined.seq - 1))
    through = data.draw(st.integers(after + 1, joined.seq))
    part = joined.part(after, through)
    inner_after = data.draw(st.integers(after, through - 1))
    inner_through = data.draw(st.integers(inner_after + 1, through))

    assert part.part(inner_after, inner_through) == joined.part(
        inner_after, inner_through
    )
    assert part.part(0, 2**60) is part


@given(singles(), st.sampled_from([1, 5, 20, MAX_MERGED_BYTES]))
def test_offsets_are_where_the_single_texts_end(
    entries: list[Entry], limit: int
) -> None:
    for entry in compact(entries, limit):
        assert entry.offset(entry.first - 1) == 0
        assert entry.offset(entry.seq) == len(entry.body)
        size = 0
        for one in entries:
            if entry.first <= one.seq <= entry.seq:
                size += len(one.body)
                assert entry.offset(one.seq) == size


@given(singles(), st.integers(0, 60))
def test_no_join_is_longer_than_allowed(entries: list[Entry], limit: int) -> None:
    joined = compact(entries, limit)

    assert all(len(e.body) <= limit or e.first == e.seq for e in joined)
    for entry, following in pairwise(joined):
        if (entry.kind, entry.turn, entry.attrs) == (
            following.kind,
            following.turn,
            following.attrs,
        ) and entry.kind != "usage":
            (head, *_) = (e for e in entries if e.first == following.first)
            assert len(entry.body) + len(head.body) > limit, "joins what it can"


def test_entries_with_a_hole_between_them_are_not_joined() -> None:
    before, left_out, behind = (text_entry("delta", seq, 1, "x") for seq in (1, 2, 3))

    assert compact([before, behind]) == [before, behind]
    assert len(compact([before, left_out, behind])) == 1


def test_a_join_may_reach_the_limit_but_not_pass_it() -> None:
    entries = [text_entry("delta", seq, 1, "xyz") for seq in (1, 2, 3)]

    assert [entry.seq for entry in compact(entries, 9)] == [3]
    assert [entry.seq for entry in compact(entries, 8)] == [2, 3]


def test_turns_and_calls_are_not_joined() -> None:
    entries = [
        text_entry("delta", 1, 1, "a"),
        text_entry("delta", 2, 2, "b"),
        text_entry("tool_delta", 3, 2, "c", b'"call":"x","name":"f",'),
        text_entry("tool_delta", 4, 2, "d", b'"call":"y","name":"f",'),
    ]

    assert compact(entries) == entries


def test_nothing_compacts_to_nothing() -> None:
    assert compact([]) == []
