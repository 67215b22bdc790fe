"""How much of conversations is kept, and for how long."""

from msgspec import Struct

from wsserver.log.store import Store


class Retention(Struct, frozen=True, kw_only=True):
    """How much of a conversation is kept; None is no limit.

    Attributes:
        seconds: Turns that were stored longer ago are dropped, and conversations
            in which nothing happened since.
        bytes: The oldest turns beyond this size are dropped.
    """

    seconds: float | None = None
    bytes: int | None = None

    def before(self, wall: float) -> float | None:
        """Returns what has to have happened since to be kept; None for no limit."""
        return None if self.seconds is None else wall - self.seconds

    async def trim_point(self, store: Store, key: str, wall: float) -> int:
        """Returns the last number of a conversation to be dropped, 0 for none.

        Raises:
            StoreError: The store can't be read.
        """
        if self.seconds is None and self.bytes is None:
            return 0
        most = 2**62 if self.bytes is None else self.bytes
        return await store.trim_point(key, self.before(wall) or 0.0, most)
