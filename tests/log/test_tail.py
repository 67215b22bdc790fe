"""The entries in memory: joined and dropped, they read the same."""

from hypothesis import given
from hypothesis import strategies as st

from tests.log.numbers import numbers
from wsserver.log.entry import Entry, text_entry
from wsserver.log.tail import Tail, cut


def entry(seq: int, kind: str = "delta") -> Entry:
    if kind == "done":
        return Entry(kind, seq, seq, 1, b'{"seq":%d}' % seq)
    return text_entry(kind, seq, 1, f"t{seq} ")


def filled(count: int, floor: int = 0) -> Tail:
    tail = Tail(floor)
    for seq in range(floor + 1, floor + count + 1):
        tail.add(entry(seq))
    return tail


def test_sealing_joins_each_entry_once() -> None:
    tail = filled(10)
    tail.seal(7)
    assert [(e.first, e.seq) for e in tail.entries] == [
        (1, 7),
        (8, 8),
        (9, 9),
        (10, 10),
    ]
    assert tail.loose == 3
    joined = tail.entries[0]
    for seq in range(11, 21):
        tail.add(entry(seq))
    tail.seal(20)
    assert tail.entries[0] is joined, "what was joined is not touched again"
    assert [(e.first, e.seq) for e in tail.entries] == [(1, 7), (8, 20)]
    assert tail.loose == 0
    tail.seal(20)
    assert len(tail.entries) == 2


def test_sealing_what_is_not_there_yet_changes_nothing() -> None:
    tail = filled(3, floor=5)
    tail.seal(5)
    assert (len(tail.entries), tail.loose) == (3, 3)
    empty = Tail(9)
    empty.seal(9)
    assert (empty.entries, empty.loose, empty.bytes()) == ([], 0, 0)


def test_entries_after_a_number() -> None:
    tail = filled(5, floor=5)
    assert [e.seq for e in tail.after(0)] == [6, 7, 8, 9, 10]
    assert [e.seq for e in tail.after(8)] == [9, 10]
    assert tail.after(10) == []


def test_dropping_whole_entries_only() -> None:
    tail = filled(6)
    tail.seal(4)
    tail.drop(3)
    assert tail.floor == 0, "number 4 is in the same entry"
    tail.drop(4)
    assert (tail.floor, [e.seq for e in tail.entries]) == (4, [5, 6])
    tail.drop(2)
    assert tail.floor == 4
    tail.drop(99)
    assert (tail.floor, tail.entries, tail.loose) == (6, [], 0)


@given(st.data())
def test_whatever_is_done_to_it_it_reads_the_same(data: st.DataObject) -> None:
    tail, model, head = Tail(0), dict(numbers([])), 0
    for _ in range(data.draw(st.integers(0, 30))):
        match data.draw(st.sampled_from(["add", "add", "seal", "replace", "drop"])):
            case "add":
                for _ in range(data.draw(st.integers(1, 5))):
                    head += 1
                    kind = data.draw(st.sampled_from(["delta", "delta", "done"]))
                    tail.add(entry(head, kind))
                    model |= numbers([tail.entries[-1]])
            case "seal":
                tail.seal(data.draw(st.integers(0, head)))
            case "replace":
                ends = [tail.floor, *(e.seq for e in tail.entries)]
                after = data.draw(st.sampled_from(ends))
                through = data.draw(st.sampled_from([e for e in ends if e >= after]))
                joined = Tail(after, cut(tail.entries, after, through))
                joined.loose = len(joined.entries)
                joined.seal(through)
                if joined.entries:
                    tail.replace(joined.entries)
            case _:
                tail.drop(data.draw(st.integers(0, head)))
        assert 0 <= tail.loose <= len(tail.entries)
        loose = tail.entries[len(tail.entries) - tail.loose :]
        assert all(e.first == e.seq for e in loose)
    kept = {seq: held for seq, held in model.items() if seq > tail.floor}
    assert numbers(tail.entries) == kept
    after = data.draw(st.integers(tail.floor, head))
    through = data.draw(st.integers(after, head))
    wanted = {seq: held for seq, held in kept.items() if after < seq <= through}
    assert numbers(cut(tail.entries, after, through)) == wanted


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 60))
def test_a_cut_stops_once_it_exceeds_its_bytes(
    after: int, through: int, max_bytes: int
) -> None:
    entries = filled(12).entries
    found = cut(entries, after, through, max_bytes)
    whole = cut(entries, after, through)
    assert found == whole[: len(found)]
    assert sum(len(e.body) for e in found[:-1]) <= max_bytes
    if len(found) < len(whole):
        assert sum(len(e.body) for e in found) > max_bytes
