"""Text for a terminal: what others wrote must not move its cursor or set its title."""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Returns the text without control characters, lines and tabs apart."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
