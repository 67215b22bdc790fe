"""Text for an operator's terminal: what could harm shows as a mark; things counted."""

from protocol.control_characters import without_controls


def printable(text: str) -> str:
    """Returns the text with a mark for each control character, lines and tabs apart."""
    return without_controls(text, "\N{REPLACEMENT CHARACTER}")


def counted(count: float, noun: str) -> str:
    """Returns a whole number of things, as in `1 user` and `1,000 users`."""
    number = f"{count:,.0f}"
    return f"{number} {noun}{'' if number == '1' else 's'}"
