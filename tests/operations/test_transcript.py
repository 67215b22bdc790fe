import zlib
from typing import Any

import msgspec
import orjson
import pytest

from wsserver.operations.transcript import listing, transcript
from wsserver.stores.sqlite.archive import Kept

KEPT = Kept(
    key="ann/c", epoch="e1", oldest=1, head=9, bytes=12, live=True, written=1.8e9
)
TIMING = {"queue_ms": 0, "total_ms": 1500}


def shown(*events: dict[str, Any]) -> list[str]:
    """Returns the lines after the head, without those that are empty."""
    frames = [
        orjson.dumps({"conversation": "c", "seq": seq, **event})
        for seq, event in enumerate(events, 1)
    ]
    lines = "\n".join(transcript(KEPT, frames)).splitlines()
    return [line for line in lines[1:] if line]


def message(content: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "role": "user", "content": content,
            "by": "ann", "at": "2026-01-01T00:00:00.000Z"}  # fmt: skip


def start(turn: int) -> dict[str, Any]:
    return {"type": "start", "turn": turn, "message": 1, "model": "m1",
            "request_id": "r", "at": "2026-01-01T00:00:00.000Z"}  # fmt: skip


def delta(turn: int, text: str, kind: str = "delta") -> dict[str, Any]:
    return {"type": kind, "turn": turn, "text": text}


def done(
    turn: int, status: str, text: str, reason: str | None = None
) -> dict[str, Any]:
    proof = {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
    return {"type": "done", "turn": turn, "status": status, "text": proof,
            "timing": TIMING} | ({"reason": reason} if reason else {})  # fmt: skip


def test_the_head_says_what_is_kept() -> None:
    (line,) = transcript(KEPT, [])

    assert line == "ann/c  epoch e1, events 1-9, written 2027-01-15 08:00:00Z"


def test_messages_and_answers_are_shown_in_order() -> None:
    assert shown(
        message("Hello\nthere"), start(2), delta(2, "Hi"), delta(2, " you"),
        done(2, "completed", "Hi you"), message("More"),
    ) == [
        "[1] ann, 2026-01-01T00:00:00.000Z", "    Hello", "    there",
        "[2] m1, completed in 1.5 s", "    Hi you",
        "[6] ann, 2026-01-01T00:00:00.000Z", "    More",
    ]  # fmt: skip


def test_all_channels_are_shown() -> None:
    lines = shown(
        start(1), delta(1, "hm", "reasoning"), delta(1, "no", "refusal"),
        {"type": "tool_call", "turn": 1, "call": "k", "name": "add", "batch": 0,
         "index": 0, "arguments": {"a": 1}, "deadline_at": "2026-01-01T00:00:00.000Z"},
        {"type": "tool_result", "turn": 1, "call": "k", "status": "ok", "output": 3,
         "by": "ann"},
        {"type": "error", "turn": 1, "code": "upstream_error", "message": "gone",
         "retryable": True},
        done(1, "failed", ""),
    )  # fmt: skip

    assert lines == [
        "[1] m1, failed in 1.5 s", "    (thinks) hm", '    add({"a":1}) -> ok 3',
        "    (refuses) no", "    upstream_error: gone",
    ]  # fmt: skip


def test_a_call_stands_where_it_was_made() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"type": "tool_delta", "turn": 1, "call": name, "name": name, "text": ""}

    assert shown(
        start(1), delta(1, "I look."), call("a"), call("b"), delta(1, "And then:"),
        call("c"),
    )[1:] == [
        "    I look.", "    a(…) -> streaming", "    b(…) -> streaming",
        "    And then:", "    c(…) -> streaming",
    ]  # fmt: skip
    assert shown(start(1), call("a"), delta(1, "Done."))[1:] == [
        "    a(…) -> streaming", "    Done."
    ]  # fmt: skip


def test_an_end_that_was_not_whole_is_told() -> None:
    assert shown(start(1), done(1, "interrupted", "", "by_client"))[0] == (
        "[1] m1, interrupted (by_client) in 1.5 s"
    )
    assert shown(start(1), done(1, "incomplete", "", "server_restarted"))[0] == (
        "[1] m1, incomplete (server_restarted)"
    ), "nobody knows how long it had run"
    assert shown(start(1))[0] == "[1] m1, not ended"
    assert shown(delta(1, "tail"))[0] == (
        "[1] a turn whose beginning is gone, not ended"
    )


def test_a_call_that_did_not_end_is_shown() -> None:
    lines = shown(
        start(1),
        {"type": "tool_delta", "turn": 1, "call": "k", "name": "add", "text": '{"a'},
    )

    assert lines[1] == "    add(…) -> streaming"


def test_content_in_parts_is_shown_as_it_is() -> None:
    lines = shown(message([{"type": "text", "text": "Hello"}]))

    assert lines[1] == '    [{"type":"text","text":"Hello"}]'


def test_what_was_said_can_not_move_the_cursor() -> None:
    lines = shown(message("a\x1b[2Jb\u202e"), start(2), delta(2, "\x1b]0;title\x07"))

    assert lines[1] == "    a\ufffd[2Jb\ufffd"
    assert lines[3] == "    \ufffd]0;title\ufffd"


def test_events_of_a_newer_kind_are_passed_over() -> None:
    assert shown(message("a"), {"type": "novelty"}, message("b"))[3] == "    b"


@pytest.mark.parametrize(
    ("oldest", "head", "numbers"), [(1, 9, "1-9"), (10, 9, "none"), (1, 0, "none")]
)
def test_the_list_is_a_table(oldest: int, head: int, numbers: str) -> None:
    kept = msgspec.structs.replace(KEPT, oldest=oldest, head=head)
    first, line = listing([kept])

    assert first.split() == ["CONVERSATION", "EVENTS", "BYTES", "WRITTEN"]
    assert line.split() == [
        "ann/c",
        numbers,
        "12",
        "2027-01-15",
        "08:00:00Z",
        "unfinished",
    ]
    assert first.index("EVENTS") == line.index(numbers)
