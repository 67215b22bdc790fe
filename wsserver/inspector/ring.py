"""The newest lines of a recording, in bounded memory.

Pages and the file are cursors into it: each holds the number of the last line that
it has, and one that is too slow misses lines rather than that they are kept for it.
"""

import anyio
from msgspec import Struct

_LINE_BYTES = 100
"""What a line takes besides its text."""


class Batch(Struct, frozen=True, kw_only=True):
    """What comes after a cursor.

    Attributes:
        lines: JSON, without line ends.
        missed: How many lines before them are gone.
        through: Where the cursor stands then.
    """

    lines: list[bytes]
    missed: int
    through: int


class Ring:
    """Lines numbered from 1, of which the oldest are dropped."""

    def __init__(self, max_bytes: int) -> None:
        """Begins with none; holds about `max_bytes`, and one line at the least."""
        self._max_bytes = max_bytes
        self._bytes = 0
        # Those before `_start` are dropped; the rest begin with number `oldest`.
        self._lines: list[bytes] = []
        self._start = 0
        self._head = 0
        self._grown: anyio.Event | None = None

    @property
    def head(self) -> int:
        """The newest line's number; 0 before the first."""
        return self._head

    @property
    def oldest(self) -> int:
        """The number of the oldest line that is kept; `head` + 1 for none."""
        return self._head - len(self._lines) + self._start + 1

    def append(self, line: bytes) -> None:
        """Adds the line with the number `head` + 1."""
        self._lines.append(line)
        self._head += 1
        self._bytes += len(line) + _LINE_BYTES
        while self._bytes > self._max_bytes and self._start < len(self._lines) - 1:
            self._bytes -= len(self._lines[self._start]) + _LINE_BYTES
            self._lines[self._start] = b""
            self._start += 1
        if self._start > len(self._lines) // 2:
            del self._lines[: self._start]
            self._start = 0
        if self._grown is not None:
            self._grown.set()
            self._grown = None

    def after(self, number: int, max_bytes: int) -> Batch:
        """Returns lines after a number, as many as fit, one at the least."""
        missed = max(0, self.oldest - 1 - number)
        begin = self._start + number + missed - self.oldest + 1
        size, end = 0, begin
        while end < len(self._lines):
            size += len(self._lines[end])
            if size > max_bytes and end > begin:
                break
            end += 1
        through = number + missed + end - begin
        return Batch(lines=self._lines[begin:end], missed=missed, through=through)

    async def wait_after(self, number: int) -> None:
        """Waits until there is a line after a number."""
        while self._head <= number:
            if self._grown is None:
                self._grown = anyio.Event()
            await self._grown.wait()
