"""Takes the teeth out of text that others wrote before it reaches a terminal."""

_KEPT = "\n\t"
_CONTROLS = {
    code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in _KEPT
}


def without_controls(text: str) -> str:
    """Drops control characters, which could move the cursor or set the title."""
    return text.translate(_CONTROLS)
