"""The last frames of a conversation, kept for the case that something is wrong.

They are written in the form of the server's inspector (docs/how-to/inspect.md), whose
page shows them; what the oracle said stands between them as an `act`.
"""

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import orjson
from msgspec import Struct

from protocol.content import ServerInfo

_VERSION = 1
_BEFORE = 200
_AFTER = 50

Kind = Literal["in", "out", "act"]


class Origin(Struct, frozen=True, kw_only=True):
    """Where recordings of a run come from.

    Attributes:
        server: What the server said it is.
        started_at: When the run began, as RFC 3339.
    """

    server: ServerInfo
    started_at: str


class _Line(Struct, frozen=True):
    at_seconds: float
    kind: Kind
    connection: str
    data: bytes


class Recording:
    """A ring of frames in both directions; stands still soon after a violation.

    Attributes:
        violated: Whether there was one.
    """

    def __init__(self) -> None:
        self.violated = False
        self._ring: deque[_Line] = deque(maxlen=_BEFORE)
        self._kept: list[_Line] = []
        self._left: int | None = None

    def sent(self, at_seconds: float, connection: str, data: bytes) -> None:
        """Takes a frame to the server, as it was on the wire."""
        self._take(_Line(at_seconds, "in", connection, data))

    def came(self, at_seconds: float, connection: str, data: bytes) -> None:
        """Takes a frame from the server, as it was on the wire."""
        self._take(_Line(at_seconds, "out", connection, data))

    def violation(self, at_seconds: float, what: str) -> None:
        """Keeps what came before, and a little of what comes."""
        if not self.violated:
            self.violated = True
            self._kept.extend(self._ring)
            self._ring.clear()
        self._left = _AFTER
        self._kept.append(_Line(at_seconds, "act", "the oracle", what.encode()))

    def write(self, path: Path, origin: Origin) -> None:
        """Writes what was kept: a header, then a line of JSON for each."""
        header = {
            "recording": _VERSION,
            "server": {"name": origin.server.name, "version": origin.server.version},
            "started_at": origin.started_at,
            "content": "whole",
        }
        lines = [header, *(_written(n, one) for n, one in enumerate(self._kept, 1))]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            b"".join(
                orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in lines
            )
        )

    def _take(self, line: _Line) -> None:
        if self._left is None:
            self._ring.append(line)
        elif self._left > 0:
            self._left -= 1
            self._kept.append(line)


def _written(number: int, line: _Line) -> dict[str, Any]:
    written: dict[str, Any] = {
        "kind": line.kind,
        "n": number,
        "at_ms": round(1000 * line.at_seconds, 3),
        "connection": line.connection,
    }
    if line.kind == "act":
        return {**written, "act": line.data.decode()}
    written["bytes"] = len(line.data)
    with suppress(orjson.JSONDecodeError):
        frame = orjson.loads(line.data)
        if isinstance(frame, dict):
            written["frame"] = frame
    return written
