"""How much of a conversation a client has been sent and not yet acknowledged."""

from collections import deque

GRAINS = 32
"""A ledger holds about this many marks, however small the frames are. Text is
credited when the whole grain that it is in was acknowledged; the last grain ends
with what was sent last, so acknowledging that always credits everything."""


class Window:
    """The ledger behind `window_bytes` and `ack`.

    Args:
        limit_bytes: How much may be unacknowledged.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._grain = max(1, limit_bytes // GRAINS)
        self._marks: deque[tuple[int, int]] = deque()  # (seq, bytes up to it)
        self._sent = 0
        self._acked = 0
        self._mark_from = 0  # what had been sent when the last mark began

    @property
    def room(self) -> int:
        """How many bytes may be sent; none when it is not above 0."""
        return self._limit - (self._sent - self._acked)

    def sent(self, seq: int, size: int) -> None:
        """Takes note that `size` bytes went out, up to number `seq`."""
        if self._marks and self._sent - self._mark_from < self._grain:
            self._marks.pop()
        else:
            self._mark_from = self._sent
        self._sent += size
        self._marks.append((seq, self._sent))

    def ack(self, seq: int) -> None:
        """Takes note that the client has taken everything up to `seq`."""
        marks = self._marks
        while marks and marks[0][0] <= seq:
            self._acked = marks.popleft()[1]
