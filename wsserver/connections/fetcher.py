"""Brings entries that are no longer in memory from the store, block by block."""

from collections import deque

import anyio
import structlog
from anyio.abc import TaskGroup

from wsserver.connections.viewer import View
from wsserver.log.entry import Entry
from wsserver.log.store import StoreError

log = structlog.get_logger(__name__)

RETRY_FIRST_SECONDS = 0.1
RETRY_MOST_SECONDS = 5.0


class Fetcher:
    """Fetches for all views of one connection.

    One block at a time, and the next one when that was sent: a connection whose
    client does not read holds one block, however many conversations it has open.
    Neither control frames nor conversations that are in memory wait for it.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        """Makes a fetcher; `tasks` are the connection's."""
        self._tasks = tasks
        self._queue: deque[View] | None = None  # while it is busy

    def fetch(self, view: View) -> None:
        """Fetches what comes after the view's cursor, then calls `fetched`."""
        if self._queue is None:
            self._queue = deque()
            self._tasks.start_soon(self._run, self._queue)
        self._queue.append(view)

    async def _run(self, queue: deque[View]) -> None:
        while queue:
            view = queue.popleft()
            entries = await self._read(view)
            used = anyio.Event()
            view.fetched(entries, used.set)
            await used.wait()
        self._queue = None

    async def _read(self, view: View) -> list[Entry]:
        delay = RETRY_FIRST_SECONDS
        while not (view.closed or view.log.deleted):
            try:
                return await view.log.fetch(view.fetch_after, view.block_bytes)
            except StoreError as error:
                if delay == RETRY_FIRST_SECONDS:
                    log.warning("history_unavailable", error=str(error))
            await anyio.sleep(delay)
            delay = min(2 * delay, RETRY_MOST_SECONDS)
        return []
