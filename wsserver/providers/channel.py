"""One of the texts of an answer: what it is, what it holds so far."""

from io import StringIO
from typing import Final

from wsserver.engine.model import ModelEvent, Reasoning, Refusal, Text
from wsserver.providers.surrogates import Joiner

Kind = type[Text] | type[Reasoning] | type[Refusal]


class Channel:
    """Collects one text and makes its events."""

    __slots__ = ("_joiner", "_kind", "_so_far")

    def __init__(self, kind: Kind) -> None:
        self._kind: Final = kind
        self._joiner = Joiner()
        # Kept only to tell what a snapshot adds.
        self._so_far = StringIO()

    def __bool__(self) -> bool:
        return self._so_far.tell() > 0 or bool(self._joiner.held)

    def push(self, text: str, out: list[ModelEvent]) -> None:
        """Adds a delta that may hold lone halves of characters."""
        self._emit(self._joiner.push(text), out)

    def push_clean(self, text: str, out: list[ModelEvent]) -> None:
        """Adds a delta that is not empty and holds no lone half."""
        if self._joiner.held:
            text = self._joiner.push(text)
        self._so_far.write(text)
        out.append(self._kind(text))

    def replace(self, whole: str, out: list[ModelEvent]) -> None:
        """Takes the text as a whole; what does not go on from here is left out."""
        so_far = self._so_far.getvalue()
        if whole.startswith(so_far) and len(whole) > len(so_far):
            self._joiner.held = ""
            self.push(whole[len(so_far) :], out)

    def flush(self, out: list[ModelEvent]) -> None:
        """Adds what stands for half a character that was never completed."""
        self._emit(self._joiner.flush(), out)

    def _emit(self, text: str, out: list[ModelEvent]) -> None:
        if text:
            self._so_far.write(text)
            out.append(self._kind(text))
