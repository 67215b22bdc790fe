"""Text for an operator's terminal: what was in it that could harm shows as a mark."""

from protocol.control_characters import without_controls


def printable(text: str) -> str:
    """Returns the text with a mark for each control character, lines and tabs apart."""
    return without_controls(text, "\N{REPLACEMENT CHARACTER}")
