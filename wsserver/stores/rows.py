"""Batches of entries: what a store keeps as one row, and rules over rows.

Pure: no I/O, no clock. Shared by the stores, so that all of them cut rows, trim
and stop reading at the same places.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from wsserver.log.entry import Entry
from wsserver.log.store import MisfitError, Write

Blob = bytes  # where `bytes` is a member's name

ROW_BYTES = 262_144
"""About what one row holds; only a single entry may be larger. It bounds what
must be decoded to read one entry, and what a compaction holds in memory twice."""

_HEAD_BYTES = 32
"""Roughly what an entry takes beside its bytes: kind, numbers, lengths."""


class Row(Struct, frozen=True, gc=False):
    """A run of entries that is written, dated and dropped as one.

    Attributes:
        first: The first number in it.
        last: The last number in it.
        at: When it was written, in seconds since the epoch.
        bytes: The length of all bodies.
        ends_turn: Whether its last entry is a `done`.
        entries: Its entries, never none.
        encoded: The same as a store writes them, where that is known already.
    """

    first: int
    last: int
    at: float
    bytes: int
    ends_turn: bool
    entries: Sequence[Entry]
    encoded: Blob = b""


class Change(Struct, frozen=True, kw_only=True):
    """What one write does to the rows of its conversation.

    Attributes:
        appended: The number its new entries begin at: the next after the head
            that the store has.
        dropped: First and last number of the stored rows that go, or None.
        rows: The rows to add, in order.
    """

    appended: int
    dropped: tuple[int, int] | None
    rows: list[Row]


def cut(entries: Iterable[Entry], at: float) -> list[Row]:
    """Returns the rows for a run of entries.

    A row ends after a `done`, so that whole turns can be trimmed, and before it
    would outgrow `ROW_BYTES`.
    """
    rows: list[Row] = []
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        weight = len(entry.body) + len(entry.ends) + len(entry.attrs) + _HEAD_BYTES
        if batch and size + weight > ROW_BYTES:
            rows.append(_row(batch, at))
            batch, size = [], 0
        batch.append(entry)
        size += weight
        if entry.kind == "done":
            rows.append(_row(batch, at))
            batch, size = [], 0
    if batch:
        rows.append(_row(batch, at))
    return rows


def _row(batch: Sequence[Entry], at: float) -> Row:
    return Row(
        batch[0].first,
        batch[-1].seq,
        at,
        sum([len(entry.body) for entry in batch]),
        batch[-1].kind == "done",
        batch,
    )


def plan(write: Write, at: float) -> Change:
    """Returns what a write that does not delete does to its rows."""
    assert write.meta is not None, "only a write that deletes has no meta"
    entries, compacted = write.entries, write.compacted
    appended = entries[0].first if entries else write.meta.head + 1
    assert not entries or entries[-1].seq == write.meta.head, (
        "the head is the number of the newest entry"
    )
    if not compacted:
        return Change(appended=appended, dropped=None, rows=cut(entries, at))
    first, last = compacted[0].first, compacted[-1].seq
    older = [entry for entry in entries if entry.seq < first]
    newer = [entry for entry in entries if entry.first > last]
    stored = min(last, appended - 1)
    return Change(
        appended=appended,
        dropped=(first, stored) if first <= stored else None,
        rows=cut(older, at) + cut(compacted, at) + cut(newer, at),
    )


def take(entries: Iterable[Entry], after: int, max_bytes: int) -> list[Entry]:
    """Returns the entries from number `after + 1` on.

    Their bodies come to `max_bytes` at most, unless the first alone is longer.
    """
    out: list[Entry] = []
    size = 0
    for entry in entries:
        if entry.seq > after:
            size += len(entry.body)
            if size > max_bytes and out:
                break
            out.append(entry)
    return out


def trim_point(rows: Sequence[Row], before: float, keep_bytes: int) -> int:
    """Returns the last number that may be dropped, as `Store.trim_point`."""
    newer = sum([row.bytes for row in rows])
    point = 0
    for row in rows:
        newer -= row.bytes
        if row.at >= before and newer < keep_bytes:
            break
        if row.ends_turn:
            point = row.last
    return point


def does_not_follow(key: str) -> MisfitError:
    """Makes the error for a write that does not begin after the stored head."""
    about = "this write does not follow on what is stored; read the conversation again"
    return MisfitError(key, about, compaction=False)


def misaligned(key: str) -> MisfitError:
    """Makes the error for a compaction that would cut a row in two."""
    about = "a compaction has to begin and end at rows' edges"
    return MisfitError(key, about, compaction=True)
