"""Where lines go: a stream that holds nobody up, whoever reads it or does not."""

import os
import select
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TextIO

PATIENCE_MS = 100
"""For a reader that has fallen behind. Granted once, until the reader catches up."""


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

    def flush(self) -> bool:
        """Writes what was taken, or loses it; returns whether all was written."""
        text, self._text = self._text, ""
        if self._cut:
            text = f"\n{text}"
        whole = self._print(text) if self._room is None else self._write(text)
        self._lost = 0 if whole else self._lost + 1
        return whole

    def _print(self, text: str) -> bool:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a stream that was closed: ValueError
            return False
        return True

    def _write(self, text: str) -> bool:
        """Writes as much as is taken without waiting."""
        # Past the stream's buffer: it would keep what the system did not take, and
        # not say how much that was.
        left = text.encode(self._stream.encoding, "backslashreplace")
        with suppress(OSError, ValueError):
            file = self._stream.fileno()
            while left and self._takes_more():
                # A pipe that takes anything takes so many bytes at once.
                written = os.write(file, left[: select.PIPE_BUF])
                self._cut = left[written - 1 : written] != b"\n"
                left = left[written:]
        return not left

    def _takes_more(self) -> bool:
        assert self._room is not None, "only a file can be full"
        return bool(self._room.poll(0 if self._lost else PATIENCE_MS))
