"""Text that others wrote, in a line that Rich prints with markup."""

from rich.markup import escape

from protocol.control_characters import without_controls


def plain(text: str) -> str:
    """Returns text that shows as it is: no markup, no control characters."""
    return escape(without_controls(text))
