"""A wake-up: it carries nothing, and costs nothing while nobody waits for it."""

import anyio


class Wakeup:
    """Wakes all who wait, each time it is given.

    An `anyio.Event` for each time would be made for nobody nearly always.
    """

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def give(self) -> None:
        """Wakes who waits now; who begins to wait later waits for the next."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Returns when it is given the next time."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()
