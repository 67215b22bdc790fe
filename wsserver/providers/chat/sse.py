"""Splits the bytes of an event stream into events, wherever reads end.

Sans-I/O: bytes in, `(name, data)` pairs out, both as bytes. It knows only the
framing (https://html.spec.whatwg.org/multipage/server-sent-events.html); what the
data means is `decoder`'s business. Text is decoded there, from whole events,
so that a character cut by a read is never seen in parts.
"""

from typing import Final

Event = tuple[bytes, bytes]

# Some upstreams send a whole answer or an image in one line.
MAX_EVENT_BYTES: Final = 16 * 1024 * 1024

_LF: Final = b"\n"
_CR: Final = b"\r"


def only_event(data: bytes) -> bytes | None:
    """Returns the data of a read that is one event of one line, else None.

    That is right only where an event may begin (`EventSplitter.between`). Nearly every
    read of a stream is one.
    """
    if (
        data[:6] == b"data: "
        and data[-2:] == b"\n\n"
        and data.find(_LF) == len(data) - 2
        and _CR not in data
        and len(data) <= MAX_EVENT_BYTES
    ):
        return data[6:-2]
    return None


class EventSplitter:
    """A push parser for one event stream.

    Lines end at CR, LF or CR LF and at nothing else; comments and unknown fields
    are skipped; data lines of an event are joined by LF; an event without data
    lines is none.

    Attributes:
        between: Whether nothing is left over from what came so far.
    """

    __slots__ = (
        "_after_cr", "_data", "_line", "_max_event_bytes", "_name", "_too_large",
        "between",
    )  # fmt: skip

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        # The line that no line end has closed yet.
        self._line = bytearray()
        # Whether the last byte was a CR, so that an LF now belongs to it.
        self._after_cr = False
        # The event that no blank line has closed yet; a bytearray once it has a
        # second data line. None: it has no data line.
        self._data: bytes | bytearray | None = None
        self._name = b""
        self._max_event_bytes = max_event_bytes
        self._too_large = False
        self.between = True

    @property
    def too_large(self) -> bool:
        """Whether a line or an event was above the limit; nothing comes after it."""
        return self._too_large

    def feed(self, data: bytes) -> list[Event]:
        """Takes the next bytes and returns the events that they completed."""
        events = self._feed(data)
        self.between = (
            not (self._line or self._name or self._after_cr or self._too_large)
            and self._data is None
        )
        return events

    def _feed(self, data: bytes) -> list[Event]:
        if self._after_cr or _CR in data:
            data = self._with_lf_only(data)
        if _LF not in data:
            self._line += data
            self._too_large |= len(self._line) > self._max_event_bytes
            return []
        if self._line:
            self._line += data
            data = bytes(self._line)
            self._line.clear()
        lines = data.split(_LF)
        rest = lines.pop()
        if rest:
            self._line += rest
        return self._events_of(lines)

    def close(self) -> list[Event]:
        """Returns the event that the end of the stream left unfinished, if any."""
        events = self._events_of([bytes(self._line), b""])
        self._line.clear()
        return events

    def _events_of(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        if self._too_large:
            return events
        limit = self._max_event_bytes
        for line in lines:
            if line[:6] == b"data: " and self._data is None:
                self._data = line[6:]
            elif not line:
                if self._data is not None:
                    events.append((self._name, bytes(self._data)))
                    self._data = None
                self._name = b""
            else:
                self._take_field(line)
            if len(line) > limit or self._too_large:
                self._too_large = True
                return events
        self._too_large = len(self._line) > limit
        return events

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if line.startswith(b"{"):  # Some forget the field's name, for errors mostly.
            self._add_data(line)
        elif field == b"data":
            self._add_data(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.strip(b" ")
        elif field == b"error":  # No field of the standard; llama.cpp had it.
            self._name = field
            self._add_data(value.removeprefix(b" "))

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        self._data += _LF
        self._data += value
        self._too_large |= len(self._data) > self._max_event_bytes

    def _with_lf_only(self, data: bytes) -> bytes:
        """Makes every line end an LF; one CR LF may come in two reads."""
        if not data:
            return data
        skip = self._after_cr and data.startswith(_LF)
        self._after_cr = data.endswith(_CR)
        if skip:
            data = data[1:]
        return data.replace(b"\r\n", _LF).replace(_CR, _LF)
