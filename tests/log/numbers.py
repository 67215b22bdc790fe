"""What a log holds under each number, however its entries are joined."""

from collections.abc import Iterable

from wsserver.log.entry import TEXT_KINDS, Entry

Held = tuple[str, int, bytes | str]


def numbers(entries: Iterable[Entry]) -> dict[int, Held]:
    """Returns kind, turn, and text or frame of each number; fails on a gap."""
    held: dict[int, Held] = {}
    for entry in entries:
        if held:
            assert entry.first == max(held) + 1
        for seq in range(entry.first, entry.seq + 1):
            piece = entry.part(seq - 1, seq)
            is_text = entry.kind in TEXT_KINDS
            content = piece.text() if is_text else piece.body
            held[seq] = (entry.kind, entry.turn, content)
    return held
