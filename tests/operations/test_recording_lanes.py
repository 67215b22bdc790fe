"""A recording in the terminal: a column for each connection."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from tests.server.conftest import logging_is_left_as_it_was
from wsserver.cli import command_line
from wsserver.operations.replay.lanes import lanes
from wsserver.operations.replay.recording import parse_recording

__all__ = ["logging_is_left_as_it_was"]

RECORDINGS = Path(__file__).parents[1] / "recordings"
HEAD = b'{"recording":1,"server":{"name":"s","version":"0"},"started_at":"T","content":"whole"}\n'


def shown(*lines: dict[str, object], columns: int = 100) -> list[str]:
    data = HEAD + b"".join(orjson.dumps(line) + b"\n" for line in lines)
    return list(lanes(parse_recording(data), columns))


def out(n: int, connection: str, **frame: object) -> dict[str, object]:
    line = {"kind": "out", "n": n, "at_ms": n * 100, "bytes": 9, "frame": frame}
    return line | {"connection": connection}


def test_each_connection_has_its_column() -> None:
    hello = {"type": "hello", "client": {"name": "page"}}
    text = shown(
        {"kind": "opened", "n": 1, "at_ms": 0, "connection": "conn_a"},
        {"kind": "in", "n": 2, "at_ms": 5, "connection": "conn_a", "bytes": 9, "frame": hello},
        {"kind": "opened", "n": 3, "at_ms": 1005, "connection": "conn_b"},
        {"kind": "closed", "n": 4, "at_ms": 1006, "connection": "conn_a", "by": "client"},
    )  # fmt: skip
    assert text[0] == "s 0, T, texts whole, 2 connections"
    head, *rows = text[2:]
    column = head.index("b")
    assert head[20:].startswith("a page")
    assert rows[1].split() == ["0.005", "+5", "ms", "→", "hello", "│"]
    assert rows[2][column] == "┌"
    assert "└ ended by the client, no close frame" in rows[3]


def test_pieces_of_a_text_are_one_line() -> None:
    pieces = [
        out(n, "a", type="delta", conversation="c", turn=2, seq=n + 2, text="abc")
        for n in range(1, 6)
    ]
    pieces[3]["at_ms"] = 1_300
    pieces[4]["at_ms"] = 1_400
    (row,) = shown(*pieces, out(9, "a", type="done", seq=8, status="completed"))[3:-1]
    assert "← delta 3…7 15 B, pause 1000 ms" in row


def test_what_else_there_is_has_a_line() -> None:
    refused = {"code": "busy", "message": "x", "retryable": True}
    rows = shown(
        {"kind": "lost", "n": 1, "at_ms": 0, "lines": 3},
        {"kind": "in", "n": 2, "at_ms": 1, "connection": "a", "bytes": 9},
        {"kind": "act", "n": 3, "at_ms": 2, "connection": "a", "act": "delay", "in_ms": 5, "out_ms": 7},
        out(4, "a", type="reply", re="x", ok=False, error=refused),
        out(5, "a", type="delta", seq=4, turn=2, text="evil \x1b]0;x\x07") | {"fault": "lost"},
    )[3:]  # fmt: skip
    text = "\n".join(rows)
    for words in ("… 3 lines missing", "→ no frame, 9 B", "! delay 5 in, 7 out"):
        assert words in text
    assert "← reply x busy" in text
    assert "(lost)" in text
    assert "\x1b" not in text


def test_an_empty_recording_is_one_line() -> None:
    assert shown() == ["s 0, T, texts whole, 0 connections"]


@pytest.mark.parametrize(
    "path", sorted(RECORDINGS.glob("*.jsonl")), ids=lambda p: p.stem
)
def test_the_command_shows_and_plays(path: Path) -> None:
    run = CliRunner().invoke(command_line(), ["replay", "--show", str(path)])
    assert "┌ opened" in run.output


def test_the_command_says_how_it_went(tmp_path: Path) -> None:
    command = ["replay", "--fast", str(RECORDINGS / "tool-call.jsonl")]
    run = CliRunner().invoke(command_line(), command, standalone_mode=False)
    assert run.return_value == 0
    assert run.output.startswith("as recorded; connections: 1")
    bad = tmp_path / "bad"
    bad.write_text("{}")
    run = CliRunner().invoke(
        command_line(), ["replay", str(bad)], standalone_mode=False
    )
    assert run.return_value == 2
    assert "line 1" in run.output
    gone = ["replay", "--url", "ws://127.0.0.1:1/v1/chat", command[-1]]
    run = CliRunner().invoke(command_line(), gone, standalone_mode=False)
    assert run.return_value == 1
    assert "does not answer" in run.output
    wrong = CliRunner().invoke(
        command_line(), ["replay", "--url", "nonsense", command[-1]]
    )
    assert wrong.exit_code == 2
