"""Takes the teeth out of text that others wrote before it reaches a terminal.

The one rule for every program of both sides; a web page needs none of it.
"""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str, instead: str = "") -> str:
    """Returns the text without control characters, ends of lines and tabs apart.

    They could move the cursor, set the title, or show words in another order than
    they stand in. So what embeds, overrides or isolates a direction goes too, also
    where it is balanced: text comes in pieces, and what ends it may never come.
    Text from right to left is laid out by the terminal's own rules, and the marks
    for that (U+061C, U+200E, U+200F) stay: they change nothing beyond themselves.

    Args:
        text: A piece of any length.
        instead: What stands in the place of each.
    """
    return _CONTROLS.sub(instead, text)
