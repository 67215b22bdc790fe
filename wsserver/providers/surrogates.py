"""Joins UTF-16 halves that an upstream split over deltas.

Some gateways cut text by UTF-16 units, so that one delta ends on the first half of
a character and the next begins with the second. A half alone is no text: no strict
encoder takes it. A half that stays alone becomes U+FFFD.
"""

from typing import Final

REPLACEMENT: Final = "\ufffd"


def clean(text: str) -> str:
    """Returns `text` with halves that meet joined and single ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Joiner:
    """Holds a first half at the end of a piece back until the second half comes."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = ""

    def push(self, text: str) -> str:
        """Returns what may be passed on now; "" when nothing may."""
        if not text:
            return text
        text = self.held + text
        self.held = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return clean(text[:-1] if self.held else text)

    def flush(self) -> str:
        """Returns what stands for a half that stayed alone, or ""."""
        text = REPLACEMENT if self.held else ""
        self.held = ""
        return text
