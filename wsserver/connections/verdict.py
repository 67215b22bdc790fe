"""What an `open` with a cursor gets: the Resume table of the protocol, pure."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from protocol.ids import MAX_SEQ
from wsserver.turns.errors import refusal


class Cursor(Struct, frozen=True, kw_only=True):
    """What a client says it has: everything up to and including `after`.

    Attributes:
        epoch: The epoch that the number belongs to; None where the client does
            not say, which is taken for the log's own.
    """

    after: int
    epoch: str | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """How the log is sent.

    Attributes:
        outcome: `replay`: the client keeps what it has. `reset`: it drops it.
        after: The first number to be sent is the one after this.
        reason: Why it is a `reset`.
    """

    outcome: Literal["replay", "reset"]
    after: int
    reason: Literal["expired", "seq_ahead", "epoch_changed"] | None = None


def read_cursor(after: Any | UnsetType, epoch: str | None) -> Cursor | None:
    """Returns the cursor of an `open`, None where it has none.

    An epoch alone is no cursor.

    Args:
        after: Whatever JSON value the client gave.
        epoch: The epoch it gave.

    Raises:
        CommandError: `bad_cursor`.
    """
    if after is UNSET:
        return None
    if type(after) is not int or not 0 <= after <= MAX_SEQ:
        raise refusal(
            "bad_cursor",
            "`after` is no number of an event; open with one that an event carried,"
            " with 0, or without.",
            param="$.after",
        )
    return Cursor(after=after, epoch=epoch)


def verdict(cursor: Cursor | None, *, epoch: str, head: int, oldest: int) -> Verdict:
    """Judges a cursor.

    Args:
        cursor: What the client has; None for nothing.
        epoch: The log's.
        head: The last number that a client may have seen; 0 for none.
        oldest: The first number that is kept; `head + 1` when none is.
    """
    everything = oldest - 1
    if cursor is None:
        return Verdict(outcome="replay", after=everything)
    if cursor.epoch is not None and cursor.epoch != epoch:
        return Verdict(outcome="reset", after=everything, reason="epoch_changed")
    if cursor.after > head:
        return Verdict(outcome="reset", after=everything, reason="seq_ahead")
    if cursor.after < everything:
        return Verdict(outcome="reset", after=everything, reason="expired")
    return Verdict(outcome="replay", after=cursor.after)
