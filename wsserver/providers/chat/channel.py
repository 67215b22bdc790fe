"""One of the texts of an answer: what it is, what it holds so far."""

from typing import Final
from zlib import crc32

from wsserver.engine.model import ModelEvent, Reasoning, Refusal, Text
from wsserver.providers.surrogates import Joiner

Kind = type[Text] | type[Reasoning] | type[Refusal]


class Channel:
    """Collects one text and makes its events."""

    __slots__ = ("_crc", "_joiner", "_kind", "_length")

    def __init__(self, kind: Kind) -> None:
        self._kind: Final = kind
        self._joiner: Joiner | None = None  # there once a text was not clean
        # Of the text so far, only to tell what a snapshot adds.
        self._length = self._crc = 0

    def __bool__(self) -> bool:
        return self._length > 0 or bool(self._joiner and self._joiner.held)

    def push(self, text: str, out: list[ModelEvent]) -> None:
        """Adds a delta that may hold lone halves of characters."""
        if self._joiner is None:
            self._joiner = Joiner()
        self._emit(self._joiner.push(text), out)

    def push_clean(self, text: str, out: list[ModelEvent]) -> None:
        """Adds a delta that is not empty and holds no lone half."""
        if self._joiner is not None:
            text = self._joiner.push(text)
        self._length += len(text)
        self._crc = crc32(text.encode(), self._crc)
        out.append(self._kind(text))

    def replace(self, whole: str, out: list[ModelEvent]) -> None:
        """Takes the text as a whole; what does not go on from here is left out."""
        so_far, rest = whole[: self._length], whole[self._length :]
        if rest and crc32(so_far.encode()) == self._crc:
            self._joiner = None
            self.push(rest, out)

    def flush(self, out: list[ModelEvent]) -> None:
        """Adds what stands for half a character that was never completed."""
        if self._joiner is not None:
            self._emit(self._joiner.flush(), out)

    def _emit(self, text: str, out: list[ModelEvent]) -> None:
        if text:
            self._length += len(text)
            self._crc = crc32(text.encode(), self._crc)
            out.append(self._kind(text))
