"""Which answer text of a turn stays, and the proof of it."""

import zlib
from collections.abc import Iterable

import msgspec

from protocol.commands import Keep
from protocol.content import TextProof
from protocol.events import CutEvent
from wsserver.log.entry import TEXT_KINDS, Entry

_cut = msgspec.json.Decoder(CutEvent).decode


def proof(entries: Iterable[Entry], turn: int, through: int) -> TextProof:
    """Returns the proof of the turn's answer text up to number `through`."""
    size = crc = 0
    for entry in entries:
        if entry.kind == "delta" and entry.turn == turn and entry.first <= through:
            text = entry.part(entry.first - 1, through).text().encode()
            size += len(text)
            crc = zlib.crc32(text, crc)
    return TextProof(bytes=size, crc32=crc)


def last_text(entries: Iterable[Entry]) -> int:
    """Returns the last number that holds text, 0 for none."""
    return max([entry.seq for entry in entries if entry.kind in TEXT_KINDS], default=0)


def cut_through(entries: Iterable[Entry], turn: int) -> int | None:
    """Returns the last number whose text the turn's cuts leave; None without one."""
    return min(
        [
            _cut(entry.body).keep_through
            for entry in entries
            if entry.kind == "cut" and entry.turn == turn
        ],
        default=None,
    )


def keep_through(
    keep: Keep | None, seen_seq: int | None, *, turn: int, sent: int, head: int
) -> int:
    """Returns the last number whose text stays.

    Args:
        keep: What the client asked for; None is `seen` with a `seen_seq`, else
            `sent`.
        seen_seq: The last number that the user saw; clamped to what was sent.
        turn: The turn's first number: nothing before it is touched.
        sent: The last number that was sent on the client's connection.
        head: The log's last number.
    """
    if keep is None:
        keep = "sent" if seen_seq is None else "seen"
    match keep:
        case "none":
            return turn
        case "generated":
            return head
        case "sent":
            through = sent
        case "seen":
            through = sent if seen_seq is None else min(seen_seq, sent)
    return max(turn, min(through, head))
