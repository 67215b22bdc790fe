"""Brings entries that are no longer in memory from the store, block by block."""

import anyio
import structlog
from anyio.abc import TaskGroup

from wsserver.connections.viewer import View
from wsserver.log.entry import Entry
from wsserver.log.store import StoreError
from wsserver.log.wakeup import Wakeup

log = structlog.get_logger(__name__)

RETRY_FIRST_SECONDS = 0.1
RETRY_MOST_SECONDS = 5.0
RETRIES_APART_SECONDS = 0.05
"""Of one connection, whatever it has open: a store that is gone answers none of them."""


class _Wanted:
    """What a view waits for.

    Attributes:
        view: The view.
        at: Not to be asked for before this; 0 before it failed.
        delay: How long to wait after the next failure, in seconds.
    """

    __slots__ = ("at", "delay", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        self.at = 0.0
        self.delay = RETRY_FIRST_SECONDS

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.view.closed or self.view.log.deleted


class Fetcher:
    """Fetches for all views of one connection.

    One block at a time, and the next one when that was sent: a connection whose
    client does not read holds one block, however many conversations it has open.
    Neither control frames nor conversations that are in memory wait for it, and none
    waits for another one that the store can't give.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        """Makes a fetcher; `tasks` are the connection's."""
        self._tasks = tasks
        self._wanted: list[_Wanted] = []
        self._more = Wakeup()
        self._busy = False
        self._retry_at = 0.0  # the next one not before this
        self._failing = False  # whether the last read failed

    def fetch(self, view: View) -> None:
        """Fetches what comes after the view's cursor, then calls `fetched`."""
        self._wanted.append(_Wanted(view))
        self._more.give()
        if not self._busy:
            self._busy = True
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        while self._wanted:
            now = anyio.current_time()
            # In the order in which they came: one that failed has come anew, and gets
            # its turn however much the others want.
            first = next((one for one in self._wanted if self._when(one) <= now), None)
            if first is None:
                with anyio.move_on_after(min(map(self._when, self._wanted)) - now):
                    await self._more.wait()
                continue
            self._wanted.remove(first)
            entries = await self._read(first)
            if entries is None:
                self._wanted.append(first)
                continue
            used = anyio.Event()
            first.view.fetched(entries, used.set)
            await used.wait()
        self._busy = False

    async def _read(self, wanted: _Wanted) -> list[Entry] | None:
        """Returns None where the store does not give it at the moment."""
        if wanted.gone:
            return []
        view = wanted.view
        if wanted.at:
            self._retry_at = anyio.current_time() + RETRIES_APART_SECONDS
        try:
            entries = await view.log.fetch(view.fetch_after, view.block_bytes)
        except StoreError as error:
            if wanted.delay == RETRY_FIRST_SECONDS and not self._failing:
                log.warning("history_unavailable", error=str(error))
            self._failing = True
        else:
            self._failing = False
            self._retry_at = 0.0  # it is there: whose time has come need not wait
            return entries
        wanted.at = anyio.current_time() + wanted.delay
        wanted.delay = min(2 * wanted.delay, RETRY_MOST_SECONDS)
        return None

    def _when(self, wanted: _Wanted) -> float:
        if wanted.gone or not wanted.at:
            return 0.0
        return max(wanted.at, self._retry_at)
