"""One numbered entry of a conversation's log, encoded once.

An entry holds bytes that are ready for the wire. Text entries (`delta`,
`reasoning`, `refusal`, `tool_delta`) hold their text as the inside of a JSON
string, so that merging neighbours is joining bytes; all other entries hold
their whole frame. A run of text entries may be *compacted* into one entry that
still knows where each of its numbers ended: it can be read from any position.

This module knows nothing of stores, cursors or tasks.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate

import orjson
from msgspec import Struct

from protocol.merge import MAX_MERGED_BYTES

TEXT_KINDS = frozenset({"delta", "reasoning", "refusal", "tool_delta"})

_HEADS = {kind: b'{"type":"%b","conversation":' % kind.encode() for kind in TEXT_KINDS}


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """What a log keeps under one number, or under a run of numbers.

    Attributes:
        kind: The event's wire type.
        first: The first number this entry stands for.
        seq: The last one; equal to `first` unless compacted.
        turn: The turn it belongs to; 0 for none.
        body: The inside of the text's JSON string for text kinds, else the
            encoded frame.
        attrs: For text kinds: encoded members between `turn` and `text`, each
            followed by a comma.
        ends: For compacted entries: for each number the offset in `body` where
            its text ends, as little-endian 32-bit integers.
    """

    kind: str
    first: int
    seq: int
    turn: int
    body: bytes
    attrs: bytes = b""
    ends: bytes = b""

    def frame(self, conversation: bytes) -> bytes:
        """Returns the wire frame; `conversation` is the encoded id, quoted."""
        head = _HEADS.get(self.kind)
        if head is None:
            return self.body
        if self.first != self.seq:
            return b'%b%b,"first":%d,"seq":%d,"turn":%d,%b"text":"%b"}' % (
                head,
                conversation,
                self.first,
                self.seq,
                self.turn,
                self.attrs,
                self.body,
            )
        return b'%b%b,"seq":%d,"turn":%d,%b"text":"%b"}' % (
            head,
            conversation,
            self.seq,
            self.turn,
            self.attrs,
            self.body,
        )

    def offset(self, seq: int) -> int:
        """Returns where in `body` the text of number `seq` ends.

        0 for numbers before `first`, the whole length from `self.seq` on.
        """
        if seq < self.first:
            return 0
        if seq >= self.seq:
            return len(self.body)
        return struct.unpack_from("<I", self.ends, 4 * (seq - self.first))[0]

    def part(self, after: int, through: int) -> "Entry":
        """Returns the entry for its numbers in `after + 1 ... through`.

        The range has to meet the entry's own.
        """
        if after < self.first and through >= self.seq:
            return self
        first, seq = max(self.first, after + 1), min(self.seq, through)
        begin, end = self.offset(first - 1), self.offset(seq)
        ends = b""
        if first != seq:
            ends = self.ends[4 * (first - self.first) : 4 * (seq - self.first + 1)]
            if begin:
                layout = f"<{seq - first + 1}I"
                offsets = struct.unpack(layout, ends)
                ends = struct.pack(layout, *[offset - begin for offset in offsets])
        return Entry(
            self.kind, first, seq, self.turn, self.body[begin:end], self.attrs, ends
        )

    def text(self) -> str:
        """Returns the text of a text entry."""
        return orjson.loads(b'"' + self.body + b'"')


def text_entry(kind: str, seq: int, turn: int, text: str, attrs: bytes = b"") -> Entry:
    """Makes a text entry; `text` must hold no lone surrogate."""
    return Entry(kind, seq, seq, turn, orjson.dumps(text)[1:-1], attrs)


def compact(entries: Iterable[Entry], max_bytes: int = MAX_MERGED_BYTES) -> list[Entry]:
    """Joins runs of text entries of one kind, turn and call, numbered in a row.

    Reading any position of the result gives what reading it in `entries` gives.
    """
    out: list[Entry] = []
    run: list[Entry] = []
    kind, turn, attrs, following, size = "", 0, b"", 0, 0
    for entry in entries:
        size += len(entry.body)
        if (
            entry.kind == kind
            and entry.first == following
            and entry.turn == turn
            and size <= max_bytes
            and entry.attrs == attrs
        ):
            run.append(entry)
        else:
            if run:
                out.append(_join(run))
            run = [entry]
            kind = entry.kind if entry.kind in TEXT_KINDS else ""
            turn, attrs, size = entry.turn, entry.attrs, len(entry.body)
        following = entry.seq + 1
    if run:
        out.append(_join(run))
    return out


def _join(run: Sequence[Entry]) -> Entry:
    head = run[0]
    if len(run) == 1:
        return head
    bodies = [entry.body for entry in run]
    ends: list[int] = []
    base = 0
    for entry, end in zip(run, accumulate(map(len, bodies)), strict=True):
        if entry.ends:
            inner = struct.unpack(f"<{len(entry.ends) // 4}I", entry.ends)
            ends += [base + offset for offset in inner]
        else:
            ends.append(end)
        base = end
    return Entry(
        head.kind,
        head.first,
        run[-1].seq,
        head.turn,
        b"".join(bodies),
        head.attrs,
        struct.pack(f"<{len(ends)}I", *ends),
    )
