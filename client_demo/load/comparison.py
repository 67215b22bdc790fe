"""Compares what a client saw live with the same log read again from its start."""

from client_demo.load.counted import counted
from client_demo.load.oracle import Oracle
from client_demo.load.violations import Found


def compare(live: Oracle, again: Oracle, found: Found, *, quiet: bool = True) -> None:
    """Says where the two differ.

    Numbers that came live as a `skip` (text after an interrupt) may hold text when
    they are read again, and it may have lost its oldest part to retention.

    Args:
        live: What came, over all connections.
        again: The whole log over a fresh connection.
        found: Told of violations.
        quiet: Nothing can have been added meanwhile.
    """
    if again.last > live.last:
        found("tail_lost", again.last, f"the last that came is {live.last}")
    elif again.last < live.last and quiet:
        found("reread_differs", live.last, f"the log ends at {again.last} now")
    oldest = min(again.digests, default=1)
    for seq in sorted(live.digests.keys() | again.digests.keys()):
        if oldest <= seq <= min(live.last, again.last):
            _compare_event(seq, live, again, found)
    for turn, seen in live.turns.items():
        kept = again.turns.get(turn)
        if kept is None or turn < oldest or not (seen.done and kept.done):
            continue
        if kept.text != seen.text:
            found(
                "reread_differs",
                turn,
                f"the text of turn {turn} had {counted(len(seen.text), 'byte')} and has"
                f" {len(kept.text)}, or others",
            )


def _compare_event(seq: int, live: Oracle, again: Oracle, found: Found) -> None:
    if seq not in again.digests:
        found("reread_differs", seq, f"event {seq} is not there any more")
    elif seq not in live.digests:
        found("reread_differs", seq, f"event {seq} never came before")
    elif live.digests[seq] != again.digests[seq]:
        found("reread_differs", seq, f"event {seq} reads otherwise now")
