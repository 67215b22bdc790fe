"""How many turns run, of each space and in all, and who waits for one to end.

What the limit is, and whose turn is next within a conversation, is for others to say.
"""

from collections.abc import Callable

import anyio

from wsserver.log.listeners import tell_all


class TurnCounts:
    """The running turns of a server, by space."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._quiet = anyio.Event()  # set when none runs any more

    @property
    def total(self) -> int:
        """How many turns run, of all spaces together."""
        return sum(self._running.values())

    def of(self, space: str) -> int:
        """Returns how many of a space run."""
        return self._running.get(space, 0)

    def began(self, space: str) -> None:
        """Counts one; `ended` has to follow."""
        self._running[space] = self.of(space) + 1

    def ended(self, space: str) -> None:
        """Counts a turn out that `began` has counted in."""
        self._running[space] -= 1
        if not self._running[space]:
            del self._running[space]
        if not self._running:
            self._quiet.set()

    def wait(self, space: str, call: Callable[[], None]) -> None:
        """Has something called, once, when others of the space may begin."""
        waiting = self._waiting.setdefault(space, [])
        if call not in waiting:
            waiting.append(call)

    def let_begin(self, space: str) -> None:
        """Calls those that wait, in order; each may find no room and wait again."""
        tell_all(self._waiting.pop(space, ()))

    async def until_none(self) -> None:
        """Waits until no turn runs."""
        while self._running:
            self._quiet = anyio.Event()
            await self._quiet.wait()
