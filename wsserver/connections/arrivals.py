"""When the newest numbers of a log were there, about. Pure: time is an argument."""

from collections import deque

MOST_MARKS = 32
"""How many moments are told apart."""


class Arrivals:
    """Remembers when numbers came; bounded, and never too late.

    Numbers that came at about the same time count as having come with the first of
    them, and the more so the longer ago that was.
    """

    def __init__(self, *, grain_seconds: float, seq: int, at: float) -> None:
        """Begins with all numbers up to `seq` having come at `at`.

        Args:
            grain_seconds: What comes within that of each other may count as one.
            seq: The last number that there is.
            at: In seconds on a monotonic clock.
        """
        self._grain = grain_seconds
        self._marks = deque([(seq, at)])  # (last number, when the first of them came)

    def came(self, seq: int, now: float) -> None:
        """Takes note that there are numbers up to `seq`."""
        marks = self._marks
        newest, at = marks[-1]
        if seq <= newest:
            return
        if now - at < self._grain:
            marks[-1] = (seq, at)
            return
        marks.append((seq, now))
        if len(marks) > MOST_MARKS:
            _, oldest = marks.popleft()
            marks[0] = (marks[0][0], oldest)

    def of(self, seq: int) -> float:
        """Returns when a number came, or a little earlier.

        Numbers before it are not asked for any more.
        """
        marks = self._marks
        while len(marks) > 1 and marks[0][0] < seq:
            marks.popleft()
        return marks[0][1]

    @property
    def newest(self) -> float:
        """When the last number came, or a little earlier."""
        return self._marks[-1][1]

    def older(self, seconds: float, now: float) -> int:
        """Returns the last number that came so long ago, or 0.

        At `of(seq) + seconds`, as floats are added, number `seq` is that old.
        """
        through = 0
        for seq, at in self._marks:
            if now < at + seconds:
                break
            through = seq
        return through
