"""How many conversations each space has in the store, and that they are not too many.

The store is asked once, when a space is to get its first conversation in this process;
from then on the number is kept here, so making one costs the same however many there
are. Whoever makes conversations or lets them go (the `directory`) says so.
"""

from collections import OrderedDict

import anyio

from wsserver.log.committer import Committer
from wsserver.log.store import Store, space_of
from wsserver.turns.errors import refusal

MOST_SPACES = 4_096
"""So many numbers are kept; of the space that made none for longest, the store is asked
again."""


class StoredCounts:
    """Counts the stored conversations of each space, as far as there is a limit."""

    def __init__(self, store: Store, committer: Committer, most: int | None) -> None:
        """Counts nothing yet.

        Args:
            store: Is asked how many there are.
            committer: Knows which of them are about to go.
            most: Of one space; None for no limit.
        """
        self._store = store
        self._committer = committer
        self._most = most
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._counting: dict[str, _Counting] = {}

    async def learn(self, space: str) -> None:
        """Makes sure that the number of a space is known.

        Raises:
            StoreError: The store can't be read.
        """
        if self._most is None:
            return
        while space in self._counting:
            await self._counting[space].ended.wait()
        if space in self._counts:
            self._counts.move_to_end(space)
            return
        counting = self._counting[space] = _Counting()
        try:
            while going := self._going(space):
                await self._committer.until_deleted(going[0])
            counting.gone = 0  # what went until here the store does not have any more
            found = await self._store.count(space)
            # What went meanwhile it may have counted: rather too much room than too little.
            self._counts[space] = max(0, found - counting.gone)
        finally:
            del self._counting[space]
            counting.ended.set()
        while len(self._counts) > MOST_SPACES:
            self._counts.popitem(last=False)

    def check_room(self, space: str) -> None:
        """Refuses one conversation too many; `learn` has to come before.

        Raises:
            CommandError: `too_many_conversations`.
        """
        count = self._counts.get(space, 0)
        if self._most is not None and count >= self._most:
            raise refusal(
                "too_many_conversations",
                f"{count} conversations are stored for these credentials, and"
                f" {self._most} is the limit; delete one first.",
            )

    def made(self, key: str) -> None:
        """Counts a conversation that was made."""
        space = space_of(key)
        if space in self._counts:
            self._counts[space] += 1

    def gone(self, key: str) -> None:
        """Counts one out that the committer was told to let go."""
        space = space_of(key)
        if space in self._counting:
            self._counting[space].gone += 1
        elif space in self._counts:
            self._counts[space] -= 1

    def _going(self, space: str) -> list[str]:
        return [key for key in self._committer.going if space_of(key) == space]


class _Counting:
    """The store is being asked."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.gone = 0
