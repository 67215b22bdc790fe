"""Commands that have to wait, for the store as a rule, in order by conversation."""

from collections import deque
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

from protocol.commands import ClientFrame
from wsserver.turns.errors import refusal

Handle = Callable[[ClientFrame], Awaitable[None]]


class Backlog:
    """One lane per conversation; a lane is a task while it has commands.

    So a command never overtakes another one of its conversation, and waits for
    none of another conversation.
    """

    def __init__(self, *, tasks: TaskGroup, handle: Handle, limit: int) -> None:
        """Makes an empty backlog.

        Args:
            tasks: The connection's.
            handle: Handles one command; raises nothing.
            limit: How many commands may wait in all lanes together.
        """
        self._tasks = tasks
        self._handle = handle
        self._limit = limit
        self._waiting = 0
        self._lanes: dict[str, deque[ClientFrame]] = {}

    def holds(self, key: str) -> bool:
        """Whether commands of that conversation wait."""
        return key in self._lanes

    def add(self, key: str, frame: ClientFrame) -> None:
        """Lets a command wait for its turn.

        Raises:
            CommandError: `rate_limited`: too many wait.
        """
        if self._waiting >= self._limit:
            raise refusal(
                "rate_limited",
                f"{self._waiting} commands wait for the store, which is the limit;"
                " send this again later under the same id.",
                retry_after_ms=1000,
            )
        self._waiting += 1
        lane = self._lanes.get(key)
        if lane is None:
            self._lanes[key] = deque([frame])
            self._tasks.start_soon(self._run, key)
        else:
            lane.append(frame)

    async def _run(self, key: str) -> None:
        lane = self._lanes[key]
        while lane:
            await self._handle(lane.popleft())
            self._waiting -= 1
        del self._lanes[key]
