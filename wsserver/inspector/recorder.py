"""Turns what is seen into numbered lines of the ring."""

from collections.abc import Callable

from msgspec import UNSET, Struct

from protocol.codec import encode
from protocol.frame_error import FrameError
from wsserver.inspector.records import (
    Act,
    Closed,
    EndedBy,
    Fault,
    Header,
    Inbound,
    Opened,
    Outbound,
)
from wsserver.inspector.redact import recorded
from wsserver.inspector.ring import Ring


class Recorder:
    """Writes lines about connections.

    Attributes:
        header: The recording's first line.
        ring: Where the lines are.
    """

    def __init__(self, header: Header, ring: Ring, now: Callable[[], float]) -> None:
        """Begins a recording.

        Args:
            header: Its first line.
            ring: Takes the others.
            now: Returns seconds on a clock that never goes back.
        """
        self.header = header
        self.ring = ring
        self._now = now
        self._start = now()
        self._content = header.content == "whole"

    def opened(self, connection: str) -> None:
        """A connection is there."""
        n, at_ms = self._next()
        self._add(Opened(n=n, at_ms=at_ms, connection=connection))

    def frame(
        self,
        way: type[Inbound | Outbound],
        connection: str,
        data: str | bytes,
        fault: Fault | None = None,
    ) -> None:
        """A frame went by.

        Args:
            way: In which direction.
            connection: On which connection.
            data: The frame as it is on the wire.
            fault: What the inspector does to it.
        """
        n, at_ms = self._next()
        frame = recorded(data, content=self._content)
        size = len(data) if isinstance(data, bytes) or data.isascii() else _size(data)
        line = way(
            n=n,
            at_ms=at_ms,
            connection=connection,
            bytes=size,
            frame=UNSET if frame is None else frame,
            fault=fault,
        )
        try:
            self._add(line)
        except FrameError:  # nested deeper than can be written: nothing of ours
            self._add(way(n=n, at_ms=at_ms, connection=connection, bytes=size))

    def closed(self, connection: str, by: EndedBy, code: int | None) -> None:
        """A connection has ended; see `Closed`."""
        n, at_ms = self._next()
        self._add(Closed(n=n, at_ms=at_ms, connection=connection, by=by, code=code))

    def act(
        self,
        connection: str,
        act: str,
        in_ms: int | None = None,
        out_ms: int | None = None,
    ) -> None:
        """Somebody did something to a connection; see `Act`."""
        n, at_ms = self._next()
        self._add(
            Act(
                n=n,
                at_ms=at_ms,
                connection=connection,
                act=act,
                in_ms=in_ms,
                out_ms=out_ms,
            )
        )

    def _next(self) -> tuple[int, float]:
        return self.ring.head + 1, round(1000 * (self._now() - self._start), 3)

    def _add(self, line: Struct) -> None:
        self.ring.append(encode(line))


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
