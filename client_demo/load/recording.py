"""The last frames of a conversation, kept for the case that something is wrong."""

from collections import deque
from pathlib import Path
from typing import Literal

import orjson
from msgspec import Struct

Direction = Literal["in", "out", "reread", "note"]

_BEFORE = 200
_AFTER = 50


class _Frame(Struct, frozen=True):
    at_s: float
    direction: Direction
    data: bytes


class Recording:
    """A ring of frames in both directions; stands still soon after a violation.

    Attributes:
        violated: Whether there was one.
    """

    def __init__(self) -> None:
        self.violated = False
        self._ring: deque[_Frame] = deque(maxlen=_BEFORE)
        self._kept: list[_Frame] = []
        self._left: int | None = None

    def frame(self, at_s: float, direction: Direction, data: bytes) -> None:
        """Takes a frame as it was on the wire, or a note."""
        frame = _Frame(at_s, direction, data)
        if self._left is None:
            self._ring.append(frame)
        elif self._left > 0:
            self._left -= 1
            self._kept.append(frame)

    def violation(self, at_s: float, what: str) -> None:
        """Keeps what came before, and a little of what comes."""
        if not self.violated:
            self.violated = True
            self._kept.extend(self._ring)
            self._ring.clear()
        self._left = _AFTER
        self._kept.append(_Frame(at_s, "note", what.encode()))

    def write(self, path: Path) -> None:
        """Writes what was kept as lines of JSON.

        Each has `at_s` (seconds since the run began), `direction` (`in` from the
        server, `out` to it, `reread` from it when it is read again, `note` for what the oracle said) and `frame`: the JSON
        of the frame, or text where it is none.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(map(_line, self._kept)))


def _line(frame: _Frame) -> bytes:
    try:
        content = orjson.loads(frame.data)
    except orjson.JSONDecodeError:
        content = frame.data.decode(errors="replace")
    line = {
        "at_s": round(frame.at_s, 6), "direction": frame.direction, "frame": content,
    }  # fmt: skip
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
