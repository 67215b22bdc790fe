"""A recording as lanes in a terminal: a column for each connection, time downwards."""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any

from msgspec import Struct

from wsserver.inspector.records import (
    Act,
    Closed,
    Inbound,
    Lost,
    Opened,
    Outbound,
    Record,
    is_event,
)
from wsserver.inspector.redact import length
from wsserver.log.entry import TEXT_KINDS
from wsserver.operations.counted import counted
from wsserver.operations.printable import printable
from wsserver.operations.replay.recording import Recording

_RUNS = TEXT_KINDS | {"skip"}
_TIME = 20
_NARROWEST = 26
_LONGEST = 8


class _Row(Struct, frozen=True):
    """One line: when, on which connection, what."""

    at_ms: float
    connection: str
    text: str


def lanes(recording: Recording, columns: int) -> Iterator[str]:
    """Yields lines of text.

    Args:
        recording: What to show.
        columns: How wide the terminal is.
    """
    names = list(
        dict.fromkeys(
            record.connection
            for _, record in recording.records
            if not isinstance(record, Lost)
        )
    )
    texts = "redacted" if recording.redacted else "whole"
    server = recording.header.server
    yield (
        f"{server.name} {server.version}, {recording.header.started_at}, texts {texts},"
        f" {counted(len(names), 'connection')}"
    )
    if not names:
        return
    width = max(_NARROWEST, (columns - _TIME) // len(names))
    clients = _clients(recording)
    heads = [
        _fit(f"{_short(name)} {clients.get(name, '')}".rstrip(), width)
        for name in names
    ]
    yield ""
    yield f"{'time':>9}{'gap':>9}  {''.join(heads)}".rstrip()
    before = None
    for row in _rows(record for _, record in recording.records):
        gap = "" if before is None else _gap(row.at_ms - before)
        before = row.at_ms
        if row.connection in names:
            lane = names.index(row.connection)
            lines = [_fit("│", width) for _ in names]
            lines[lane] = _fit(row.text, width)
        else:
            lines = [row.text]
        yield f"{row.at_ms / 1000:9.3f}{gap:>9}  {''.join(lines)}".rstrip()


def _rows(records: Iterator[Record]) -> Iterator[_Row]:
    for _, group in groupby(records, _run):
        run = list(group)
        first = run[0]
        if len(run) > 1 and isinstance(first, Outbound):
            yield _text_row([each for each in run if isinstance(each, Outbound)])
            continue
        for record in run:
            yield _row(record)


def _run(record: Record) -> object:
    """Returns the same for neighbours that are shown as one."""
    if isinstance(record, Outbound) and isinstance(record.frame, dict):
        frame = record.frame
        if frame.get("type") in _RUNS and record.fault is None:
            return (record.connection, frame["type"], frame.get("turn"))
    return record.n


def _text_row(run: list[Outbound]) -> _Row:
    frames: list[dict[str, Any]] = [
        each.frame for each in run if isinstance(each.frame, dict)
    ]
    size = sum(length(frame.get("text", "")) for frame in frames)
    pause = max(b.at_ms - a.at_ms for a, b in pairwise(run))
    begin = frames[0].get("first", frames[0]["seq"])
    text = f"← {frames[0]['type']} {begin}…{frames[-1]['seq']}"
    if size:
        text += f" {size} B, pause {pause:.0f} ms"
    return _Row(run[0].at_ms, run[0].connection, text)


def _row(record: Record) -> _Row:
    match record:
        case Lost(at_ms=at_ms, lines=lines):
            return _Row(at_ms, "", f"… {counted(lines, 'line')} missing")
        case Opened():
            text = "┌ opened"
        case Closed(by=by, code=code):
            text = f"└ ended by the {by}, {code or 'no close frame'}"
        case Act(act=act, in_ms=in_ms, out_ms=out_ms):
            text = f"! {act}" + ("" if in_ms is None else f" {in_ms} in, {out_ms} out")
        case Inbound() | Outbound():
            arrow = "→" if isinstance(record, Inbound) else "←"
            fault = f" ({record.fault})" if record.fault else ""
            text = f"{arrow} {_said(record)}{fault}"
    return _Row(record.at_ms, record.connection, text)


def _said(record: Inbound | Outbound) -> str:
    if not isinstance(record.frame, dict):
        return f"no frame, {record.bytes} B"
    frame = record.frame
    kind = str(frame.get("type"))
    words = [kind]
    if is_event(frame):
        words.append(str(frame["seq"]))
    words += [_short(frame[member]) for member in ("re", "id") if member in frame]
    words += [
        str(frame[member])
        for member in ("outcome", "after", "model", "status", "reason", "code")
        if member in frame
    ]
    match frame:
        case {"error": {"code": code}}:
            words.append(str(code))
        case _:
            pass
    words += [
        frame[member]
        for member in ("name", "content", "text")
        if isinstance(frame.get(member), str)
    ]
    return printable(" ".join(words)).replace("\n", " ")


def _short(name: object) -> str:
    text = str(name).removeprefix("conn_")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _clients(recording: Recording) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for _, record in recording.records:
        match record:
            case Inbound(frame={"type": "hello", "client": {"name": name}}):
                found[record.connection] = printable(str(name))
            case _:
                pass
    return found


def _fit(text: str, width: int) -> str:
    if len(text) >= width:
        text = f"{text[: width - 2]}…"
    return text.ljust(width)


def _gap(ms: float) -> str:
    return f"+{ms:.0f} ms" if ms < 10_000 else f"+{ms / 1000:.0f} s"
