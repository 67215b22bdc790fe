"""The newest entries of a log, in memory.

They are contiguous and end at the log's head. Neighbours can be joined and the
oldest let go; what is read from any position stays the same. When that may happen
is the log's business.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from wsserver.log.entry import Entry, compact

ALL_BYTES = 2**62
"""More bytes than there are."""

_seq = attrgetter("seq")


class Tail:
    """A run of entries that grows at its end.

    Attributes:
        entries: They hold the numbers `floor + 1 ... head`.
        floor: The last number that is not in them.
        loose: How many entries at the end were never joined.
    """

    __slots__ = (
        "entries", "floor", "loose",
    )  # fmt: skip

    def __init__(self, floor: int, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self.floor = floor
        self.loose = 0

    def add(self, entry: Entry) -> None:
        """Takes the entry of the next number."""
        self.entries.append(entry)
        self.loose += 1

    def after(self, seq: int) -> list[Entry]:
        """Returns the entries after number `seq`, where an entry has to end."""
        entries = self.entries
        if entries and entries[-1].first == seq + 1:  # as a token comes after another
            return entries[-1:]
        return entries[bisect_right(entries, seq, key=_seq) :]

    def bytes(self) -> int:
        """Returns the length of all bodies."""
        return sum([len(entry.body) for entry in self.entries])

    def seal(self, through: int) -> None:
        """Joins the loose entries up to number `through`.

        Those that were joined before are not touched, so each is joined once.
        """
        begin = len(self.entries) - self.loose
        end = bisect_right(self.entries, through, lo=begin, key=_seq)
        self.loose = len(self.entries) - end
        self.entries[begin:end] = compact(self.entries[begin:end])

    def replace(self, joined: Sequence[Entry]) -> None:
        """Puts joined entries in the place of the ones they stand for."""
        begin = bisect_right(self.entries, joined[0].first - 1, key=_seq)
        end = bisect_right(self.entries, joined[-1].seq, key=_seq)
        self.loose = min(self.loose, len(self.entries) - end)
        self.entries[begin:end] = joined

    def drop(self, through: int) -> None:
        """Lets go of the entries that end at or before number `through`."""
        if through <= self.floor:
            return
        count = bisect_right(self.entries, through, key=_seq)
        if count:
            self.floor = self.entries[count - 1].seq
            del self.entries[:count]
            self.loose = min(self.loose, len(self.entries))


def missing(entries: Sequence[Entry], first: int, at_most: int) -> int | None:
    """Returns the number that entries lack to be contiguous, None where they are.

    Args:
        entries: Whatever a store gave.
        first: The number they may begin with.
        at_most: The highest number they may begin with.
    """
    for entry in entries:
        if not first <= entry.first <= at_most:
            return first
        first = at_most = entry.seq + 1
    return None


def out_of_order(entries: Sequence[Entry]) -> int | None:
    """Returns a number that comes twice or after a higher one, None where none does."""
    for before, entry in pairwise(entries):
        if entry.first <= before.seq:
            return entry.first
    return None


def cut(
    entries: Sequence[Entry], after: int, through: int, max_bytes: int = ALL_BYTES
) -> list[Entry]:
    """Returns what contiguous entries hold of `after + 1 ... through`.

    Stops once the bodies exceed `max_bytes`.
    """
    out: list[Entry] = []
    size = 0
    for index in range(bisect_right(entries, after, key=_seq), len(entries)):
        entry = entries[index]
        if entry.first > through or size > max_bytes:
            break
        out.append(entry.part(after, through))
        size += len(entry.body)
    return out
