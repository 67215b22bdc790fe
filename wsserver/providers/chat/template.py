"""Events that say the same as one before them, but for their text.

Most upstreams write the same members around each piece of an answer. Where an event
repeats byte for byte what stood before and after the text of an earlier one, its text
is known without reading JSON again.
"""

from typing import Final

from wsserver.providers.chat.chunks import CHUNK, Choice, Chunk, Delta
from wsserver.providers.chat.sse import MAX_EVENT_BYTES

_BEGIN: Final = b"data: "
_END: Final = b"\n\n"
_MEMBER: Final = b'"content":"'
_MORE: Final = "more"

# An upstream that writes something else into each event is not tried for ever.
_MOST_LEARNED: Final = 8


class Template:
    """What stands around the text in the events of one answer."""

    __slots__ = ("_after", "_before", "_learned")

    def __init__(self) -> None:
        self._before = self._after = b""
        self._learned = 0

    def text(self, data: bytes) -> str | None:
        """Returns the text of a read that is such an event and no more; else None."""
        before, after = self._before, self._after
        if (
            before
            and data.startswith(before)
            and data.endswith(after)
            and len(data) <= MAX_EVENT_BYTES
        ):
            try:
                text = data[len(before) : len(data) - len(after)].decode()
            except UnicodeDecodeError:
                return None
            # Then the characters stand in JSON as they are.
            if text.isprintable() and '"' not in text and "\\" not in text:
                return text or None
        return None

    def learn(self, payload: bytes, chunk: Chunk) -> None:
        """Learns from an event that says nothing but one piece of text, or doesn't.

        Args:
            payload: The event's JSON, which holds no line ends.
            chunk: The same, decoded.
        """
        if self._learned == _MOST_LEARNED:
            return
        choice = chunk.choices[0] if chunk.choices else Choice()
        text = choice.delta and choice.delta.content
        if not text or choice.index or chunk != _saying(text, choice.index):
            return
        self._learned += 1
        if '"' in text or "\\" in text:  # else the same bytes may be something else
            return
        known = _MEMBER + text.encode()
        before, member, after = payload.partition(known + b'"')
        if not member:
            return
        after = b'"' + after
        # That the text read is the one found is tried with another text, not guessed.
        longer = before + known + _MORE.encode() + after
        if _says(longer, text + _MORE, choice.index):
            self._before, self._after = _BEGIN + before + _MEMBER, after + _END


def _says(payload: bytes, text: str, index: int | None) -> bool:
    try:
        return CHUNK.decode(payload) == _saying(text, index)
    except RecursionError:  # one call fewer from the limit, it could be read
        return False


def _saying(text: str, index: int | None) -> Chunk:
    """Returns the chunk that says a text and nothing else."""
    return Chunk(choices=[Choice(index=index, delta=Delta(content=text))])
