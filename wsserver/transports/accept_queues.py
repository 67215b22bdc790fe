"""How many connections may wait to be accepted: no more than there are files for.

An event loop accepts all that wait in one go, and what no file is left for it may
drop without a word. What does not get into the queue is tried again by the client's
system a second later.
"""

import socket
from collections.abc import Iterable
from typing import Any

MOST = 4096
FEWEST = 8

_STEP_SHARE = 8
"""The queue is changed when it is wrong by an eighth: each change is a system call."""


class AcceptQueues:
    """The queues of one listener's sockets."""

    def __init__(self, room: int, *, files: int = 1) -> None:
        """Takes what they have to fit to.

        Args:
            room: For how many connections there are files, open ones included.
            files: How many a connection takes while it is accepted.
        """
        self._room = room
        self._files = files
        self._sockets: list[socket.socket] = []
        self.size = self._fitting(0)

    def watch(self, listening: Iterable[Any]) -> None:
        """Takes the sockets, which listen with `size`."""
        # Those of event loops are no sockets that could be told to listen again.
        self._sockets = [
            socket.fromfd(one.fileno(), one.family, one.type) for one in listening
        ]

    def fit(self, connections: int) -> None:
        """Makes the queues fit to so many open connections."""
        size = self._fitting(connections)
        if abs(size - self.size) * _STEP_SHARE > self.size:
            self.size = size
            for one in self._sockets:
                one.listen(size)

    def close(self) -> None:
        """Lets go of the sockets."""
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    def _fitting(self, connections: int) -> int:
        return min(max(FEWEST, (self._room - connections) // self._files), MOST)
