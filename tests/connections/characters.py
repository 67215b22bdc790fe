"""Texts whose characters are made of several pieces, and where these begin."""

import regex
from hypothesis import strategies as st

FAMILY = ["👨", "\u200d", "👩", "\u200d", "👧", "\u200d", "👦"]
FLAGS = ["🇩", "🇪", "🇫", "🇷"]
SYLLABLE = ["क", "\u094d", "ष", "\u093f"]  # one syllable: क्षि

PIECES = [
    *FAMILY, *FLAGS, *SYLLABLE,
    "a", " ", "hi ", "e", "\u0301", "\u0308", "1", "\ufe0f", "\u20e3", "\U0001f44d",
    "\U0001f3fd", "你", "好", "。", "\r", "\n", "\u1100", "\u1161", "\u11a8", "\u0600",
    "\u0e19", "\u0e35", "\u0e48", '"', "\\", "\x00", "a\u0301b", "🇩🇪", "नि",
]  # fmt: skip

pieces = st.sampled_from(PIECES)


def starts(text: str) -> set[int]:
    """Returns where characters begin, by looking at the whole text."""
    return {found.start() for found in regex.finditer(r"\X", text)}
