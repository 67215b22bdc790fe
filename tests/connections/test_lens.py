"""What a client sees of entries: every number once, the text whole."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.merge import MAX_MERGED_BYTES
from wsserver.connections.lens import Lens
from wsserver.log.entry import Entry, compact, text_entry

QUOTED = b'"c"'
ATTRS = b'"call":"k","name":"t",'


def lens(*, frames: bool = False, tool_deltas: bool = False) -> Lens:
    return Lens(QUOTED, frames=frames, tool_deltas=tool_deltas)


def other(kind: str, seq: int, turn: int = 0) -> Entry:
    body = b'{"type":"%b","conversation":"c","seq":%d}' % (kind.encode(), seq)
    return Entry(kind, seq, seq, turn, body)


def show(
    shown: Lens,
    entries: list[Entry],
    after: int,
    through: int = 10**9,
    size: int = 10**9,
) -> tuple[int, list[dict[str, Any]]]:
    out: list[bytes] = []
    position, total = shown.show(entries, after, through, size, out)
    assert total == sum(map(len, out))
    return position, [msgspec.json.decode(frame) for frame in out]


def brief(frames: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            frame["type"],
            frame.get("first", frame["seq"]),
            frame["seq"],
            frame.get("text"),
        )
        for frame in frames
    ]


def words(
    count: int, first: int = 1, turn: int = 1, kind: str = "delta"
) -> list[Entry]:
    attrs = ATTRS if kind == "tool_delta" else b""
    return [
        text_entry(kind, seq, turn, f"w{seq} ", attrs)
        for seq in range(first, first + count)
    ]


@pytest.mark.parametrize(
    ("kind", "joined"),
    [
        ("delta", [("delta", 1, 2, "w1 w2 "), ("delta", 4, 5, "w4 w5 ")]),
        ("tool_delta", [("skip", 1, 2, None), ("skip", 4, 5, None)]),
    ],
)
def test_numbers_that_are_lacking_show(kind: str, joined: list[Any]) -> None:
    entries = [*words(2, kind=kind), *words(2, first=4, kind=kind)]
    position, frames = show(lens(), entries, 0)
    assert (position, brief(frames)) == (5, joined)


def test_one_entry_is_one_frame() -> None:
    position, frames = show(lens(), words(1, 7), 6)
    assert position == 7
    assert frames == [
        {"type": "delta", "conversation": "c", "seq": 7, "turn": 1, "text": "w7 "}
    ]


def test_neighbours_of_one_kind_are_joined() -> None:
    entries = [
        *words(3, 1),
        *words(2, 4, kind="reasoning"),
        *words(2, 6, turn=2),
        other("done", 8),
        *words(1, 9),
    ]
    position, frames = show(lens(), entries, 0)
    assert position == 9
    assert brief(frames) == [
        ("delta", 1, 3, "w1 w2 w3 "),
        ("reasoning", 4, 5, "w4 w5 "),
        ("delta", 6, 7, "w6 w7 "),
        ("done", 8, 8, None),
        ("delta", 9, 9, "w9 "),
    ]


def test_unmerged_what_is_hidden_is_one_skip_and_all_else_a_frame_of_its_own() -> None:
    entries = [*words(2, 1), *compact(words(3, 3, kind="tool_delta")), *words(2, 6)]
    _, frames = show(lens(frames=True), entries, 0)
    assert [(first, seq) for _, first, seq, _ in brief(frames)] == [
        (1, 1), (2, 2), (3, 5), (6, 6), (7, 7),
    ]  # fmt: skip
    assert frames[2]["type"] == "skip"


def test_neighbours_of_different_turns_and_calls_are_not_joined() -> None:
    entries = [
        *words(1, 1, turn=1),
        *words(1, 2, turn=2),
        text_entry("tool_delta", 3, 2, "a", b'"call":"k","name":"t",'),
        text_entry("tool_delta", 4, 2, "b", b'"call":"l","name":"t",'),
    ]
    _, frames = show(lens(tool_deltas=True), entries, 0)
    assert [frame["seq"] for frame in frames] == [1, 2, 3, 4]
    assert [frame["call"] for frame in frames[2:]] == ["k", "l"]


@pytest.mark.parametrize("joined", [False, True])
def test_frames_never_joins(joined: bool) -> None:
    entries = compact(words(4)) if joined else words(4)
    _, frames = show(lens(frames=True), entries, 1)
    assert brief(frames) == [("delta", n, n, f"w{n} ") for n in (2, 3, 4)]


@pytest.mark.parametrize("joined", [False, True])
def test_the_range_cuts_joined_entries(joined: bool) -> None:
    entries = compact(words(9)) if joined else words(9)
    position, frames = show(lens(), entries, 3, through=6)
    assert position == 6
    assert brief(frames) == [("delta", 4, 6, "w4 w5 w6 ")]


def test_tool_deltas_are_skipped_unless_asked_for() -> None:
    entries = [*words(1), *words(3, 2, kind="tool_delta"), *words(1, 5)]
    _, frames = show(lens(), entries, 0)
    assert brief(frames) == [
        ("delta", 1, 1, "w1 "),
        ("skip", 2, 4, None),
        ("delta", 5, 5, "w5 "),
    ]
    _, frames = show(lens(tool_deltas=True), entries, 0)
    assert brief(frames)[1] == ("tool_delta", 2, 4, "w2 w3 w4 ")
    assert frames[1]["call"] == "k"


def test_a_single_skip_has_no_first() -> None:
    _, frames = show(lens(), words(1, 5, kind="tool_delta"), 4)
    assert frames == [{"type": "skip", "conversation": "c", "seq": 5}]


@pytest.mark.parametrize("frames", [False, True])
def test_text_of_a_muted_turn_is_skipped_and_nothing_else(frames: bool) -> None:
    shown = lens(frames=frames, tool_deltas=True)
    shown.muted.add(1)
    entries = [
        *compact(words(2)),
        *words(1, 3, kind="reasoning"),
        *words(1, 4, kind="tool_delta"),
        other("done", 5, turn=1),
        *words(1, 6, turn=6),
    ]
    _, got = show(shown, entries, 0)
    assert brief(got) == [
        ("skip", 1, 4, None),
        ("done", 5, 5, None),
        ("delta", 6, 6, "w6 "),
    ]


def test_a_single_entry_of_a_muted_turn() -> None:
    shown = lens()
    shown.muted.add(1)
    _, got = show(shown, words(1, 3), 2)
    assert brief(got) == [("skip", 3, 3, None)]


def test_a_frame_never_holds_more_than_the_merging_limit() -> None:
    entries = [text_entry("delta", n, 1, "x" * 10_000) for n in range(1, 41)]
    _, frames = show(lens(), entries, 0)
    assert max(len(frame["text"]) for frame in frames) <= MAX_MERGED_BYTES
    assert len(frames) < 5


def test_the_budget_ends_it_after_one_frame_at_the_least() -> None:
    entries = words(100)
    position, frames = show(lens(frames=True), entries, 0, size=1)
    assert (position, len(frames)) == (1, 1)
    position, frames = show(lens(), entries, 0, size=200)
    assert 1 < position < 100
    assert len(frames) == 1


def joined(entries: list[Entry], cuts: set[int]) -> list[Entry]:
    """Joins what lies between the cuts, as stores and logs do."""
    out: list[Entry] = []
    group: list[Entry] = []
    for entry in entries:
        group.append(entry)
        if entry.seq in cuts:
            out += compact(group)
            group = []
    return out + compact(group)


@given(
    kinds=st.lists(
        st.tuples(
            st.sampled_from(["delta", "delta", "reasoning", "tool_delta", "done"]),
            st.integers(1, 2),
            st.text(max_size=4),
        ),
        min_size=1,
        max_size=40,
    ),
    cuts=st.sets(st.integers(1, 40)),
    budgets=st.lists(st.integers(1, 400), min_size=1),
    frames=st.booleans(),
    tool_deltas=st.booleans(),
    muted=st.sets(st.integers(1, 2)),
    data=st.data(),
)
def test_every_number_once_and_the_text_byte_for_byte(
    kinds: list[tuple[str, int, str]],
    cuts: set[int],
    budgets: list[int],
    frames: bool,
    tool_deltas: bool,
    muted: set[int],
    data: st.DataObject,
) -> None:
    entries = [
        other(kind, seq, turn)
        if kind == "done"
        else text_entry(kind, seq, turn, text, ATTRS if kind == "tool_delta" else b"")
        for seq, (kind, turn, text) in enumerate(kinds, 1)
    ]
    shown = lens(frames=frames, tool_deltas=tool_deltas)
    shown.muted |= muted
    kept = joined(entries, cuts)
    after = start = data.draw(st.integers(0, len(entries) - 1))
    through = data.draw(st.integers(start + 1, len(entries)))
    got: list[dict[str, Any]] = []
    turn = 0
    while after < through:
        rest = [entry for entry in kept if entry.seq > after]
        position, batch = show(
            shown, rest, after, through, budgets[turn % len(budgets)]
        )
        assert position > after, "something is always sent"
        got += batch
        after, turn = position, turn + 1
    numbers = [
        number
        for frame in got
        for number in range(frame.get("first", frame["seq"]), frame["seq"] + 1)
    ]
    assert numbers == list(range(start + 1, through + 1))

    def visible(kind: str, turn: int) -> bool:
        return turn not in muted and (kind != "tool_delta" or tool_deltas)

    for kind in ("delta", "reasoning", "tool_delta"):
        for turn in (1, 2):
            want = "".join(
                text
                for k, t, text in kinds[start:through]
                if (k, t) == (kind, turn) and visible(k, t)
            )
            assert want == "".join(
                frame["text"]
                for frame in got
                if frame["type"] == kind and frame["turn"] == turn
            )
    assert sum(k == "done" for k, _, _ in kinds[start:through]) == sum(
        frame["type"] == "done" for frame in got
    )
    if frames:
        assert all("first" not in frame or frame["type"] == "skip" for frame in got)


@pytest.mark.parametrize("frames", [False, True])
def test_it_stops_with_the_frame_that_reaches_the_budget(frames: bool) -> None:
    entries = [other("done", seq) for seq in range(1, 6)]
    size = len(entries[0].body)
    assert [
        show(lens(frames=frames), entries, 0, size=budget)[0]
        for budget in (1, size, size + 1, 3 * size - 1, 3 * size, 3 * size + 1)
    ] == [1, 1, 2, 3, 3, 4]


def test_what_is_hidden_costs_the_budget_its_one_frame() -> None:
    entries = [*words(50, 1, kind="tool_delta"), other("done", 51), other("done", 52)]
    skip = len(b'{"type":"skip","conversation":"c","first":1,"seq":50}')
    assert show(lens(), entries, 0, size=1)[0] == 50
    assert show(lens(), entries, 0, size=skip)[0] == 50
    assert show(lens(), entries, 0, size=skip + 1)[0] == 51
