"""The keys of an issuer that publishes them: kept, and asked for again when due.

They are fetched at the start and every few minutes, and also, though not often, when
a token names one that is not known: issuers change their keys. While they can't be
fetched those that are known go on for an hour, so that nobody is logged out by an
outage over there.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

import anyio
import structlog

from wsserver.auth.signing_keys import Key, KeySetError, KeyTable, read_key_set

REFRESH_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 10.0
"""Between two attempts at the least, whatever tokens name."""
KEEP_SECONDS: Final = 3_600.0
FETCH_SECONDS: Final = 5.0

log = structlog.get_logger(__name__)


class FetchError(Exception):
    """The document can't be had; says why, without the address."""


class KeySet:
    """Keys by what a document says that is somewhere else.

    `run` has to run while keys are asked for.
    """

    def __init__(
        self, fetch: Callable[[], Awaitable[bytes]], algorithms: frozenset[str]
    ) -> None:
        """Begins without keys.

        Args:
            fetch: Returns the document, or raises `FetchError`.
            algorithms: Those that tokens may have.
        """
        self._fetch = fetch
        self._algorithms = algorithms
        self._keys: KeyTable = {}
        self._fetched_at = -inf
        self._tried_at = -inf
        self._trying = True  # the first attempt is due
        self._tried = anyio.Event()
        self._wanted = anyio.Event()
        self._failing = False

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Returns the key that a token names; without an id, the only one.

        Waits for an attempt that runs, or that is made for its sake.
        """
        found = self._known(key_id, algorithm)
        if found is not None:
            return found
        now = anyio.current_time()
        if not self._trying and now - self._tried_at < RETRY_SECONDS:
            return None
        self._wanted.set()
        await self._tried.wait()
        return self._known(key_id, algorithm)

    async def run(self) -> None:
        """Fetches the keys again and again, until cancelled."""
        while True:
            self._trying = True
            try:
                await self._try()
            finally:
                self._trying = False
                self._tried_at = anyio.current_time()
                self._wanted = anyio.Event()
                tried, self._tried = self._tried, anyio.Event()
                tried.set()
            due_seconds = RETRY_SECONDS if self._failing else REFRESH_SECONDS
            with anyio.move_on_after(due_seconds):
                await self._wanted.wait()

    def _known(self, key_id: str | None, algorithm: str) -> Key | None:
        if anyio.current_time() - self._fetched_at > KEEP_SECONDS:
            return None
        if key_id is not None:
            return self._keys.get((key_id, algorithm))
        fitting = [key for (_, name), key in self._keys.items() if name == algorithm]
        return fitting[0] if len(fitting) == 1 else None

    async def _try(self) -> None:
        try:
            with anyio.fail_after(FETCH_SECONDS):
                document = await self._fetch()
            keys = read_key_set(document, self._algorithms)
        except (FetchError, KeySetError, TimeoutError) as error:
            if not self._failing:
                about = str(error) or "it took too long"
                log.warning("signing_keys_unavailable", about=about)
            self._failing = True
            return
        if self._failing:
            log.info("signing_keys_available", keys=len(keys))
        self._failing = False
        self._keys = keys
        self._fetched_at = anyio.current_time()
