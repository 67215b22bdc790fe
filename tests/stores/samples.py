"""Entries and writes to try stores with."""

from collections.abc import Sequence
from typing import Any

from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, Receipt, Write

KEY = "anna/c-1"
OTHER = "anna/c-2"
NOW = 1_800_000_000.0
ALL = 2**40


def tokens(first: int, last: int, turn: int = 1) -> list[Entry]:
    return [
        text_entry("delta", seq, turn, f"t{seq} ") for seq in range(first, last + 1)
    ]


def done(seq: int, turn: int = 1) -> Entry:
    return Entry("done", seq, seq, turn, b'{"type":"done"}')


def meta(head: int, *, epoch: str = "e1", oldest: int = 1, live: bool = True) -> Meta:
    return Meta(epoch=epoch, head=head, oldest=oldest, live=live, state=b"\0s\xff")


def appending(entries: Sequence[Entry], key: str = KEY, **members: Any) -> Write:
    return Write(key=key, meta=meta(entries[-1].seq), entries=entries, **members)


def at_rest(entries: Sequence[Entry], key: str = KEY) -> Write:
    """Makes a write of a conversation in which no turn runs, so no more may come."""
    return Write(key=key, meta=meta(entries[-1].seq, live=False), entries=entries)


def compacting(entries: Sequence[Entry], head: int) -> Write:
    return Write(key=KEY, meta=meta(head), compacted=compact(entries))


def receipt(name: str, at: float, principal: str = "anna") -> Receipt:
    return Receipt(principal=principal, id=name, digest=b"\0d", reply=b"{\xff}", at=at)


def only(entries: Sequence[Entry], after: int, through: int = 2**53) -> list[Entry]:
    """Cuts entries down to single numbers, those in `after + 1 ... through`."""
    return [
        entry.part(seq - 1, seq)
        for entry in entries
        for seq in range(entry.first, entry.seq + 1)
        if after < seq <= through
    ]
