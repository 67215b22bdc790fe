"""Text that grows by pieces, and what proves a copy of it."""

from zlib import crc32

from protocol.content import TextProof


def proof(text: str) -> TextProof:
    """Returns what proves a copy of `text`, which has no lone surrogate."""
    data = text.encode()
    return TextProof(bytes=len(data), crc32=crc32(data))


class Text:
    """A text that takes pieces at its end, each in constant time.

    The pieces are joined when somebody reads. Equal texts are equal, however
    they were cut into pieces.
    """

    __slots__ = ("_characters", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._characters = len(text)

    def append(self, piece: str) -> None:
        """Puts `piece` at the end."""
        self._pieces.append(piece)
        self._characters += len(piece)

    def keep(self, size_bytes: int) -> None:
        """Drops what lies behind the first `size_bytes` bytes of its UTF-8.

        A character that would be cut in two goes too. Never adds anything.
        """
        data = str(self).encode()
        if size_bytes < len(data):
            text = data[:size_bytes].decode(errors="ignore")
            self._pieces = [text]
            self._characters = len(text)

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def __len__(self) -> int:
        return self._characters

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Text):
            return NotImplemented
        return str(self) == str(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"
