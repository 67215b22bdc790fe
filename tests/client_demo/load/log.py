"""A small log as a server would send it, to be spoilt."""

from typing import Any
from zlib import crc32

import msgspec

from client_demo.load.oracle import Oracle
from client_demo.load.violations import Kind
from protocol.control import Reply
from protocol.events import LogEvent

AT = "2026-01-02T03:04:05.678Z"


def event(kind: str, seq: int, **members: Any) -> LogEvent:
    """Makes an event."""
    frame = {"type": kind, "conversation": "c", "seq": seq, **members}
    return msgspec.convert(frame, LogEvent)


def proof(text: str) -> dict[str, int]:
    return {"bytes": len(text.encode()), "crc32": crc32(text.encode())}


def turn(first: int, *texts: str, send: str = "m1", **done: Any) -> list[LogEvent]:
    """A message and its turn: 5 + n events, the message at `first`."""
    start = first + 1
    events = [
        event(
            "message", first, id=send, role="user", content="hi", by="me", at=AT
        ),
        event(
            "start", start, turn=start, message=first, model="m", request_id="r", at=AT
        ),
    ]  # fmt: skip
    events += [
        event("delta", start + 1 + place, turn=start, text=text)
        for place, text in enumerate(texts)
    ]
    seq = events[-1].seq
    members = {
        "status": "completed",
        "text": proof("".join(texts)),
        "timing": {"queue_ms": 0, "total_ms": 1},
    }
    return [
        *events,
        event(
            "usage", seq + 1, turn=start, input_tokens=1, output_tokens=len(texts),
            estimated=False, model_calls=1,
        ),
        event("done", seq + 2, turn=start, **members | done),
    ]  # fmt: skip


def opened(outcome: str = "created", **members: Any) -> Reply:
    usual = {"epoch": "e", "head": 0, "oldest": 1}
    return msgspec.convert(
        {"re": "o", "ok": True, "outcome": outcome, **usual | members}, Reply
    )


class Heard:
    """An oracle, and what it has found."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.said: list[tuple[int | None, str]] = []
        self.oracle = Oracle(self.found)

    def found(self, kind: Kind, seq: int | None, what: str) -> None:
        self.kinds.append(kind)
        self.said.append((seq, what))


def hear(*events: LogEvent) -> Heard:
    """Lets an oracle hear events of a new conversation to its end."""
    heard = Heard()
    heard.oracle.opened(opened(), None)
    for one in events:
        heard.oracle.event(one)
    heard.oracle.finish()
    return heard
