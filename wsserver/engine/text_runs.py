"""What one read of an upstream held, with neighbouring pieces of one text joined. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from wsserver.engine.model import (
    Answering,
    CallFragment,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
)

Other = CallFragment | Answering | Finished

_KINDS: Final[dict[type, str]] = {
    Text: "delta",
    Reasoning: "reasoning",
    Refusal: "refusal",
}


class TextRun(NamedTuple):
    """Neighbouring pieces of one text.

    Attributes:
        kind: The wire type of its event.
        text: All of them.
        pieces: How many they were.
    """

    kind: str
    text: str
    pieces: int


def text_runs(events: Sequence[ModelEvent]) -> Iterator[TextRun | Other]:
    """Yields the events in their order; runs of text as one."""
    kind = ""
    pieces: list[str] = []
    for event in events:
        found = _KINDS.get(type(event), "")
        if pieces and found != kind:
            yield TextRun(kind, "".join(pieces), len(pieces))
            pieces = []
        kind = found
        if isinstance(event, Text | Reasoning | Refusal):
            pieces.append(event.text)
        else:
            yield event
    if pieces:
        yield TextRun(kind, "".join(pieces), len(pieces))
