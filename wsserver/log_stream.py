"""Where log lines go: a stream that holds nobody up, whoever reads it or does not."""

import select
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TextIO

PATIENCE_MS = 100
"""For a reader that has fallen behind. It is had once, until something is read."""

# A pipe that takes anything takes so many bytes at once; UTF-8 has four a character.
_PIECE = select.PIPE_BUF // 4


class LogStream:
    """A stream that loses what can't be written: the disk is full, nobody reads.

    Else a line would end or hold up whatever it tells of: a pipe whose reader has
    stopped, as `less` does, takes 64 KiB and then lets everybody wait.
    """

    def __init__(self, stream: TextIO) -> None:
        """Takes the stream to write to."""
        self._stream = stream
        self._text = ""
        self._lost = 0
        self._cut = False  # the last line lacks its end
        self._room: select.poll | None = None
        with suppress(OSError, ValueError):  # a stream without a file
            file = stream.fileno()
            self._room = select.poll()
            self._room.register(file, select.POLLOUT)

    def tell_lost(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Has a line say how many before it were lost; a processor of structlog."""
        del logger, method
        if self._lost:
            event["lines_lost"] = self._lost
        return event

    def write(self, text: str) -> None:
        """Takes a line or a piece of one."""
        self._text += text

    def flush(self) -> None:
        """Writes what was taken, or loses it."""
        text, self._text = self._text, ""
        if self._cut:
            text = f"\n{text}"
        try:
            written = self._written(text)
        except (OSError, ValueError):  # a stream that was closed: ValueError
            written = 0
        if written:
            self._cut = written < len(text)
        self._lost = 0 if written == len(text) else self._lost + 1

    def _written(self, text: str) -> int:
        """Writes as much as is taken without waiting; returns how many characters."""
        for start in range(0, len(text), _PIECE):
            if not self._takes_more():
                return start
            self._stream.write(text[start : start + _PIECE])
            self._stream.flush()
        return len(text)

    def _takes_more(self) -> bool:
        patience_ms = 0 if self._lost else PATIENCE_MS
        return self._room is None or bool(self._room.poll(patience_ms))
