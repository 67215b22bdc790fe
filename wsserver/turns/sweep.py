"""Retention at work: what is in memory is trimmed, what lies idle is dropped.

A conversation that is neither is trimmed when it is loaded. What is kept is said by
`retention`.
"""

from collections.abc import Callable
from typing import NoReturn

import anyio
import structlog

from wsserver.log.committer import Committer
from wsserver.log.store import Store, StoreError
from wsserver.turns.directory import Directory
from wsserver.turns.retention import Retention

EVERY_SECONDS = 600.0
IDLE_AT_ONCE = 100
"""Conversations that are dropped with one commit: others wait for it."""

log = structlog.get_logger(__name__)


class Sweep:
    """Drops what need not be kept any more."""

    def __init__(
        self,
        directory: Directory,
        store: Store,
        committer: Committer,
        *,
        retention: Retention,
        wall: Callable[[], float],
    ) -> None:
        """Drops nothing yet.

        Args:
            directory: Which conversations are in memory.
            store: Which ones lie idle.
            committer: Drops those.
            retention: What is kept.
            wall: Returns seconds since the epoch.
        """
        self._directory = directory
        self._store = store
        self._committer = committer
        self._retention = retention
        self._wall = wall

    async def run(self) -> NoReturn:
        """Sweeps now and every ten minutes; a store that fails is asked the next time."""
        while True:
            try:
                await self.once()
            except StoreError as error:
                log.warning("retention_failed", error=str(error))
            await anyio.sleep(EVERY_SECONDS)

    async def once(self, at_once: int = IDLE_AT_ONCE) -> int:
        """Sweeps; returns how many idle conversations were dropped, all there are.

        Args:
            at_once: So many of them are dropped with one commit.

        Raises:
            StoreError: The store can't be read, or does not take it at the moment.
        """
        wall = self._wall()
        for conversation in self._directory.in_memory():
            key = conversation.log.key
            if self._directory.loaded(key) is not conversation:
                continue  # it left memory while another was looked at
            try:
                with conversation.held():
                    point = await self._retention.trim_point(self._store, key, wall)
                    conversation.trim(point)
            except StoreError:
                raise
            except Exception:
                # The boundary of a conversation: nothing else is kept for its sake.
                log.exception("conversation_not_trimmed", key=key)
        before = self._retention.before(wall)
        dropped = 0
        while before is not None:
            drop = await self._drop_idle(before, at_once)
            dropped += len(drop)
            if len(drop) < at_once:
                break
            await self._committer.until_deleted(drop[-1])
        return dropped

    async def _drop_idle(self, before: float, most: int) -> list[str]:
        # What is open somewhere may be idle too, and must not stand before the rest.
        enough = most + len(self._directory.in_memory())
        with self._directory.departures() as left:
            idle = await self._store.idle(before, enough)
        # What was used since the store looked is not idle any more.
        free = [key for key in idle if not (key in left or self._directory.uses(key))]
        for key in free[:most]:
            self._directory.discard(key)
        return free[:most]
