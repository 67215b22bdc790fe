"""A recorder, and its lines as values."""

from collections.abc import Callable
from typing import Literal

from protocol.content import ServerInfo
from wsserver.inspector.recorder import Recorder
from wsserver.inspector.records import VERSION, Header, Record, decode_record
from wsserver.inspector.ring import Ring

AT = "2026-01-02T03:04:05.678Z"
BYTES = 1_000_000


def recorder(
    content: Literal["redacted", "whole"] = "redacted",
    ring_bytes: int = BYTES,
    now: Callable[[], float] = lambda: 0.0,
) -> Recorder:
    header = Header(
        recording=VERSION,
        server=ServerInfo(name="wsserver", version="0"),
        started_at=AT,
        content=content,
    )
    return Recorder(header, Ring(ring_bytes), now)


def lines(recorder: Recorder) -> list[Record]:
    """Returns what is in the ring."""
    batch = recorder.ring.after(0, BYTES)
    return [decode_record(line) for line in batch.lines]
