"""Joins neighbouring text events into fewer frames that say the same.

The server does this on encoded bytes (`wsserver.log.entry`); this is the same
rule on events, for clients, tests and tools.
"""

from collections.abc import Iterable

import orjson
from msgspec.structs import replace

from protocol.events import (
    DeltaEvent,
    LogEvent,
    ReasoningEvent,
    RefusalEvent,
    TextEvent,
    ToolDeltaEvent,
    first_seq,
)

MAX_MERGED_BYTES = 131_072
"""The longest encoded text that merging, or a log's compaction, builds: half of the
usual frame limit, so a frame's head always fits."""

_Text = DeltaEvent | ReasoningEvent | RefusalEvent | ToolDeltaEvent


def merge(
    events: Iterable[LogEvent], max_bytes: int = MAX_MERGED_BYTES
) -> list[LogEvent]:
    """Returns `events` with runs of text joined; a joined event has `first`.

    A run is text of one kind, one turn and (for `tool_delta`) one call, whose
    numbers follow each other without a gap.

    Args:
        events: In the order of their numbers.
        max_bytes: The longest text that is built, as encoded in JSON. A single
            event that is longer stays as it is.
    """
    out: list[LogEvent] = []
    run: list[_Text] = []
    size = 0
    for event in events:
        if not isinstance(event, TextEvent):
            out += _joined(run)
            run = []
            out.append(event)
            continue
        length = len(orjson.dumps(event.text)) - 2
        if run and not (_follows(run[-1], event) and size + length <= max_bytes):
            out += _joined(run)
            run = []
        size = size + length if run else length
        run.append(event)
    out += _joined(run)
    return out


def _follows(last: _Text, event: _Text) -> bool:
    return (
        type(event) is type(last)
        and event.turn == last.turn
        and event.conversation == last.conversation
        and first_seq(event) == last.seq + 1
        and _call(event) == _call(last)
    )


def _call(event: _Text) -> tuple[str, str] | None:
    return (event.call, event.name) if isinstance(event, ToolDeltaEvent) else None


def _joined(run: list[_Text]) -> list[_Text]:
    if len(run) < 2:
        return run
    text = "".join([event.text for event in run])
    return [replace(run[-1], first=first_seq(run[0]), text=text)]
