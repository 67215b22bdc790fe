"""What it costs to look for a pattern of a JSON Schema in a text, at the most.

In steps of `wsserver.engine.schema_cost`, some 50 ns each. Measured with patterns
that no automaton gets small: `(a|b)*a(a|b){400}c` takes 15 µs a character.
"""

import re
from math import prod
from typing import Final

BACKTRACKS: Final = 10_000
"""After so many the search is given up; only patterns that look around do any."""
COMPILED_BYTES: Final = 131_072
"""The largest that a compiled pattern may be. It takes some milliseconds."""

_MAX_A_CHARACTER: Final = 300
_BACKTRACKING: Final = 2_000

_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_MANY_CHARACTERS = re.compile(r"\\[wWsSdDpP]|\[\^|\(\?[a-z]*i|\.")
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]|\\[1-9k]|\(\?>|[*+?}]\+")


class PatternCost:
    """What searches for one pattern cost."""

    def __init__(self, pattern: str) -> None:
        """Judges a pattern by how it is written."""
        bounds = (
            min(int((at[2] or at[1])[:6]), 100_000)
            for at in _REPEATED.finditer(pattern)
        )
        size = len(pattern) * prod(max(1, bound) for bound in bounds)
        if _MANY_CHARACTERS.search(pattern):
            size *= 8
        self._a_character = 1 / 20 if size < 64 else min(_MAX_A_CHARACTER, size / 32)
        self._backtracks = _LOOKS_AROUND.search(pattern) is not None

    def steps(self, characters: int) -> int:
        """Returns the most steps for a search in so many characters."""
        steps = int(characters * self._a_character)
        if self._backtracks:
            steps += _BACKTRACKING + characters**2 // 14
        return steps
