"""Conversations as text for a person: one line each, or what was said in one. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from textwrap import indent
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from protocol.codec import UnknownFrame, decode_server_frame
from protocol.events import LogEvent, MessageEvent
from protocol.fold import fold
from protocol.view import CallView, TurnView
from wsserver.operations.counted import counted
from wsserver.operations.printable import printable

if TYPE_CHECKING:
    from wsserver.stores.sqlite.archive import Kept

_HEADS = ("CONVERSATION", "EVENTS", "BYTES", "WRITTEN", "")
_ENCODE = msgspec.json.Encoder().encode


def listing(found: Sequence["Kept"]) -> Iterator[str]:
    """Yields a table of conversations, line by line."""
    rows = [_HEADS] + [
        (
            kept.key,
            _numbers(kept),
            f"{kept.bytes}",
            _time(kept.written),
            "unfinished" if kept.live else "",
        )
        for kept in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def listing_json(found: Sequence["Kept"]) -> Iterator[str]:
    """Yields a JSON object for each conversation."""
    for kept in found:
        yield _ENCODE(kept).decode()


def transcript(kept: "Kept", frames: Iterable[bytes]) -> Iterator[str]:
    """Yields what a client would show of the conversation, line by line."""
    yield (
        f"{kept.key}  epoch {kept.epoch}, events {_numbers(kept)},"
        f" written {_time(kept.written)}"
    )
    for part in fold(map(_event, frames)).timeline:
        yield ""
        lines = _message(part) if isinstance(part, MessageEvent) else _turn(part)
        yield from map(printable, lines)


def _event(frame: bytes) -> LogEvent:
    event = decode_server_frame(frame)
    if isinstance(event, UnknownFrame):
        event = event.skip
    assert isinstance(event, LogEvent), "a log holds events only"
    return event


def _message(message: MessageEvent) -> Iterator[str]:
    yield f"[{message.seq}] {message.by}, {message.at}"
    content = message.content
    yield _block(content if isinstance(content, str) else _json(content))


def _turn(turn: TurnView) -> Iterator[str]:
    yield f"[{turn.turn}] {turn.model or 'a turn whose beginning is gone'}, {_end(turn)}"
    if turn.reasoning:
        yield _block(f"(thinks) {turn.reasoning}")
    for part in turn.parts():
        yield _block(part if isinstance(part, str) else _call(part))
    if turn.refusal:
        yield _block(f"(refuses) {turn.refusal}")
    if turn.error is not None:
        yield _block(f"{turn.error.code}: {turn.error.message}")


def _end(turn: TurnView) -> str:
    words = [turn.status or "not ended"]
    if turn.reason is not None:
        words.append(f"({turn.reason})")
    # Whoever ends a turn after a restart does not know how long it had run.
    if turn.timing is not None and turn.reason != "server_restarted":
        words.append(f"in {turn.timing.total_ms / 1000:.1f} s")
    if turn.usage is not None:
        words.append(f"with {counted(turn.usage.output_tokens, 'token')}")
    return " ".join(words)


def _call(call: CallView) -> str:
    arguments = "…" if call.arguments is UNSET else _json(call.arguments)
    output = "" if call.output is UNSET else f" {_json(call.output)}"
    return f"{call.name or '?'}({arguments}) -> {call.status}{output}"


def _block(text: str) -> str:
    return indent(text, "    ", lambda line: True)


def _numbers(kept: "Kept") -> str:
    return f"{kept.oldest}-{kept.head}" if kept.oldest <= kept.head else "none"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _json(value: Any) -> str:
    return _ENCODE(value).decode()
