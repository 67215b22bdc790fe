"""What the log needs of a store. Drivers in `wsserver.stores` provide it.

A store keeps, for each conversation key (`SPACE/CONVERSATION`): its entries in
rows that are batches, one `Meta`, and the receipts of commands. It knows
nothing of turns, frames or principals.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from wsserver.log.entry import Entry

RECEIPTS_KEPT_SECONDS = 86_400.0
"""A receipt is kept at least this long ..."""

RECEIPTS_KEPT = 1_000
"""... and while it is among this many newest of its principal and conversation: the
protocol promises whichever is more."""


def space_of(key: str) -> str:
    """Returns the space of a conversation's key; a space may have slashes."""
    return key.rpartition("/")[0]


class StoreError(Exception):
    """The store could not be read or written; the caller may try again."""


class LossError(StoreError):
    """The store lacks some of what was committed to it."""


class MisfitError(StoreError):
    """A write does not fit what is stored of its conversation; no other is at fault.

    Attributes:
        key: The conversation.
        compaction: Whether it would fit without what it compacts.
    """

    def __init__(self, key: str, about: str, *, compaction: bool) -> None:
        super().__init__(f"{key}: {about}")
        self.key = key
        self.compaction = compaction


class Meta(Struct, frozen=True, kw_only=True, array_like=True):
    """What is known of a conversation without reading its entries.

    Attributes:
        epoch: Changes only if the log may have lost continuity.
        head: The last number; 0 while the log is empty.
        oldest: The first number that is kept; `head + 1` when none is.
        live: Whether a turn runs or a message waits, so that a restart knows
            which conversations a crash cut off.
        state: The engine's snapshot, opaque here.
    """

    epoch: str
    head: int
    oldest: int
    live: bool
    state: bytes


class Receipt(Struct, frozen=True, kw_only=True, array_like=True):
    """That a command was applied, and what was answered.

    Attributes:
        principal: Who sent it.
        id: The command's id, unique for its principal and conversation.
        digest: A hash of the command's content.
        reply: The encoded reply.
        at: When, in seconds since the epoch.
    """

    principal: str
    id: str
    digest: bytes
    reply: bytes
    at: float


class Write(Struct, frozen=True, kw_only=True):
    """What one commit writes of one conversation.

    Attributes:
        key: The conversation.
        meta: Its meta from here on; None with `delete`.
        entries: New entries, contiguous after the stored head.
        compacted: Entries that replace the rows of `compacted[0].first ...
            compacted[-1].seq`, which begin and end at rows' edges; they may
            include entries of this same write. The text that several writes bring
            to a running turn may be one row, all else begins a row.
        receipts: New receipts.
        trim_through: Drop the rows that end at or before this number.
        delete: Drop all that is kept under the key, receipts too.
    """

    key: str
    meta: Meta | None = None
    entries: Sequence[Entry] = ()
    compacted: Sequence[Entry] = ()
    receipts: Sequence[Receipt] = ()
    trim_through: int = 0
    delete: bool = False


class Store(Protocol):
    """Keeps logs. All methods raise `StoreError` when they can't.

    Attributes:
        durable: Whether what was committed outlives the process. Entries of a
            store that is not durable may be seen before they are committed.
    """

    durable: bool

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        """Writes all or nothing; returns when a crash can't take it back.

        Keys are different. `now` (seconds since the epoch) dates the rows.
        Safe under cancellation: the commit then happens or does not, whole.

        Raises:
            MisfitError: One of the writes does not fit what is stored.
            StoreError: Nothing was written; what is due comes again.
        """
        ...

    def put_text(self, key: str, entry: Entry) -> bool:
        """Stores one entry of text at once, if that takes microseconds.

        It is for a conversation that is live as committed last, follows on what is
        stored of it, and changes nothing else: the meta stays as it was, but for the
        head. No commit that writes the conversation is under way. A crash can't take
        the entry back.

        Returns:
            Whether it is stored. If not, nothing happened; a commit will bring it.
        """
        ...

    async def meta(self, key: str) -> Meta | None:
        """Returns the conversation's meta, None if it is not kept."""
        ...

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        """Returns entries from number `after + 1` on, in order.

        Stops once the bodies exceed `max_bytes`, but returns at least one entry
        if there is one. The first entry may begin before `after + 1` (it is a
        compacted one); the caller takes the part it needs.
        """
        ...

    async def receipts(self, key: str, since: float, limit: int) -> list[Receipt]:
        """Returns the newest receipts, oldest first.

        Those at or after `since`, and at least the newest `limit` of each principal.
        """
        ...

    async def live(self) -> list[str]:
        """Returns the keys whose meta says `live`."""
        ...

    async def trim_point(self, key: str, before: float, keep_bytes: int) -> int:
        """Returns the highest number that may be dropped, 0 for none.

        It is the last number of a row that ends with a `done`, and each row up
        to it is older than `before` or lies beyond the newest `keep_bytes`
        bytes of the conversation's rows.
        """
        ...

    async def idle(self, before: float, limit: int) -> list[str]:
        """Returns keys of conversations in which nothing happens any more.

        At most `limit`, not live, and last written before `before`.
        """
        ...

    async def count(self, space: str) -> int:
        """Returns how many conversations of a space are kept.

        It is asked when one is to be made in a space for the first time, or again after
        long; so it may take milliseconds, and has to grow with this space alone.
        """
        ...

    async def close(self) -> None:
        """Finishes what was begun and lets go of the store."""
        ...
