"""Reading a whole log: what the store has, then what memory holds.

Viewers don't read like this; they follow with a cursor (`ConversationLog.read`).
"""

from collections.abc import Sequence

from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import Entry
from wsserver.log.store import LossError
from wsserver.log.tail import missing

READ_BYTES = 262_144
"""How much of a log is read from the store at once, where all of it is wanted."""


async def read_whole(
    log: ConversationLog, first: int = 1, max_bytes: int = READ_BYTES
) -> list[Entry]:
    """Returns all kept entries, stored or not, in order and without a gap.

    Args:
        log: The log.
        first: The number to begin with.
        max_bytes: How much is read from the store at once.

    Raises:
        LossError: The store lacks some of it.
        StoreError: The store can't be read.
    """
    entries: list[Entry] = []
    following = max(first, log.oldest)
    while not log.remembers(following):
        batch = await log.fetch(following - 1, max_bytes)
        _check_whole(log, batch, following)
        if not batch:
            if following < log.oldest:  # what is between was trimmed, so all before is
                entries.clear()
            break
        _go_on(entries, batch)
        following = batch[-1].seq + 1
    _go_on(entries, log.tail(following))
    return entries


def _check_whole(log: ConversationLog, batch: Sequence[Entry], following: int) -> None:
    """Sees that nothing with a hole passes for the whole log."""
    lacks = missing(batch, following, max(following, log.oldest))
    if not batch and following >= log.oldest:
        lacks = following
    if lacks is not None and not log.deleted:
        raise LossError(f"{log.key}: the store lacks number {lacks}")


def _go_on(entries: list[Entry], batch: Sequence[Entry]) -> None:
    """Adds a batch; if what is between was trimmed meanwhile, all before is too."""
    if entries and batch and batch[0].first != entries[-1].seq + 1:
        entries.clear()
    entries += batch
