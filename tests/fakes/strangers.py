"""Every command on an id that is somebody else's, or that nobody ever had.

Two principals have nothing in common, so the two must be alike in all that can be
seen of them. `cases` has each command for one id; what is compared is `masked`.
"""

import re
from typing import Any

Frame = dict[str, Any]

SETTINGS = {"model": "demo/echo"}


def on_conversation(conversation: str, *, epoch: str, turn: int) -> dict[str, Frame]:
    """Returns each command on a conversation.

    Args:
        conversation: Whose it is makes the difference.
        epoch: Of the conversation, if it is somebody's.
        turn: Of the conversation, if it is somebody's.
    """
    there = {"conversation": conversation}
    return {
        "open at a cursor": {"type": "open", **there, "epoch": epoch, "after": 3},
        "open at a number": {"type": "open", **there, "after": 0},
        "open at an epoch": {"type": "open", **there, "epoch": epoch},
        "open far ahead": {"type": "open", **there, "epoch": epoch, "after": 999},
        "open at no number": {"type": "open", **there, "after": -1},
        "configure": {"type": "configure", **there, "config": SETTINGS},
        "configure badly": {
            "type": "configure",
            **there,
            "config": {"model": "no such model"},
        },
        "send": {"type": "send", **there, "content": "hi"},
        "send and interrupt": {
            "type": "send",
            **there,
            "content": "hi",
            "policy": "interrupt",
            "seen_seq": 3,
        },
        "send and steer": {
            "type": "send",
            **there,
            "content": "hi",
            "policy": "steer",
        },
        "send or not": {"type": "send", **there, "content": "hi", "policy": "reject"},
        "send again": {"type": "send", **there, "content": "hello", "id": "m1"},
        "interrupt": {"type": "interrupt", **there},
        "interrupt a turn": {"type": "interrupt", **there, "turn": turn, "seen_seq": 1},
        "interrupt a send": {"type": "interrupt", **there, "send": "m1"},
        "tool_result": {"type": "tool_result", **there, "call": "k", "output": 1},
        "tool error": {
            "type": "tool_result",
            **there,
            "call": "k",
            "error": {"message": "no"},
        },
        "tool_progress": {"type": "tool_progress", **there, "call": "k"},
        "fork": {"type": "fork", **there, "through": turn},
        "fork to a name": {"type": "fork", **there, "through": 0, "new": "n"},
        "ack": {"type": "ack", **there, "seq": 3},
        "close": {"type": "close", **there},
        "delete": {"type": "delete", **there},
        "delete of an epoch": {"type": "delete", **there, "epoch": epoch},
        # Last, as it makes one of its own.
        "open": {"type": "open", **there},
    }


def in_own(
    conversation: str, *, name: str, turn: int, send: str, call: str
) -> dict[str, Frame]:
    """Returns each command on one's own conversation that names other ids.

    Args:
        conversation: One's own.
        name: Of a conversation.
        turn: A turn's number.
        send: The id of a send.
        call: The id of a tool call.
    """
    there = {"conversation": conversation}
    return {
        "a turn": {"type": "interrupt", **there, "turn": turn, "seen_seq": 1},
        "a send": {"type": "interrupt", **there, "send": send},
        "a call's result": {"type": "tool_result", **there, "call": call, "output": 1},
        "a call's progress": {"type": "tool_progress", **there, "call": call},
        "a fork's name": {"type": "fork", **there, "through": 0, "new": name},
    }


def masked(frames: list[str], *ids: str) -> list[str]:
    """Returns what was said, with ids, epochs and times put out of sight."""
    told: list[str] = []
    for frame in frames:
        text = re.sub(r'"(epoch|re|at|server_time)":"[^"]*"', r'"\1":"…"', frame)
        for id_ in ids:
            text = text.replace(id_, "…")
        told.append(text)
    return told
