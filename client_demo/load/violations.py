"""What an oracle can find, by name."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Kind = Literal[
    "bad_frame", "foreign_event", "foreign_reply", "gap", "repeated", "reordered",
    "log_reset", "head_behind", "early_caught_up", "two_turns", "no_start", "bad_start",
    "after_done", "second_done", "second_usage", "no_usage", "no_error", "no_done",
    "wrong_text", "text_after_interrupt", "message_lost", "message_twice",
    "reply_twice", "call_unsettled", "call_settled_twice", "call_unknown",
    "request_twice", "tail_lost", "reread_differs",
]  # fmt: skip

KINDS: dict[Kind, str] = {
    "bad_frame": "A frame that is none of the protocol.",
    "foreign_event": "An event of a conversation that this connection has not open.",
    "foreign_reply": "A reply to a command that was not given on this socket.",
    "gap": "Numbers are missing.",
    "repeated": "Numbers that had come already came again.",
    "reordered": "Numbers that were missing came later.",
    "log_reset": "The server began the log anew, or has lost it: what was seen is void.",
    "head_behind": "The head of the log lies before what was seen of it.",
    "early_caught_up": "`caught_up` came before all that it speaks of.",
    "two_turns": "A turn began while another one ran.",
    "no_start": "An event of a turn that did not begin.",
    "bad_start": "A `start` whose `turn` is not its number (so a second one), or for no message.",
    "after_done": "Something of a turn came after its `done`, other than `cut`.",
    "second_done": "A turn ended twice.",
    "second_usage": "A turn has two `usage`.",
    "no_usage": "A turn ended without `usage`.",
    "no_error": "`failed` without an `error`, or an `error` without `failed`.",
    "no_done": "A turn never ended.",
    "wrong_text": "The text is not the one that `done` or `cut` proves.",
    "text_after_interrupt": "Text of a turn came after the reply to its interrupt.",
    "message_lost": "A message that was accepted is not in the log.",
    "message_twice": "A message is in the log twice.",
    "reply_twice": "A command got two replies.",
    "call_unsettled": "A turn ended with a tool call that has no result.",
    "call_settled_twice": "A tool call has two results.",
    "call_unknown": "A result of a tool call that was not shown, or a call shown twice.",
    "request_twice": "A tool was asked for twice without `redelivered`.",
    "tail_lost": "The log goes on beyond what ever came.",
    "reread_differs": "The log reads otherwise when it is read again from the start.",
}


class Violation(Struct, frozen=True, kw_only=True):
    """One broken promise.

    Attributes:
        kind: Which.
        conversation: Where.
        seq: The number at which it was seen; null where there is none.
        what: In words.
        recording: The file with the frames around it; null where there is none.
    """

    kind: Kind
    conversation: str
    seq: int | None
    what: str
    recording: str | None = None


Found = Callable[[Kind, int | None, str], None]
"""Told of each violation: its kind, the number, what was seen."""
