"""Strategies for text.

Not `st.text()` by itself: the first use of that in a clean checkout computes a table
of Unicode, which takes long enough to fail hypothesis' health check.
"""

from hypothesis import strategies as st

whole_text = st.text(
    (st.integers(0, 0xD7FF) | st.integers(0xE000, 0x10FFFF)).map(chr), max_size=5
)
"""Any text that can be written as UTF-8."""

any_text = st.text(st.integers(0, 0x10FFFF).map(chr), max_size=5)
"""Any text that Python can hold: with halves of surrogate pairs."""
