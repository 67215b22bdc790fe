"""No word of anybody gets into a recording unasked, and no credential ever."""

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.codec import decode_command, decode_server_frame, encode
from protocol.events import LogEvent, first_seq
from protocol.fold import fold
from tests.protocol.logs import logs, merged_somehow
from wsserver.inspector.redact import SECRET, mark, recorded

FRAMES = Path(__file__).parents[1] / "protocol"
COMMANDS = (FRAMES / "client_frames.jsonl").read_bytes().splitlines()
ANSWERS = (FRAMES / "server_frames.jsonl").read_bytes().splitlines()
FREE = ("arguments", "output", "metadata", "params", "parameters", "response_schema")
SAID = ("text", "content", "instructions", "description", "message", "url", "error")


def said(value: Any, name: str = "") -> set[str]:
    """Returns every string of a frame that is somebody's words."""
    if isinstance(value, dict):
        inner = FREE if name in FREE else ()
        return {
            text
            for key, member in value.items()
            for text in said(member, name if inner else key)
        }
    if isinstance(value, list):
        return {text for entry in value for text in said(entry, name)}
    words = name in FREE or (name in SAID and isinstance(value, str))
    return {value} if words and isinstance(value, str) and len(value) > 3 else set()


@pytest.mark.parametrize("frame", [*COMMANDS, *ANSWERS], ids=lambda f: f[:60].decode())
def test_words_go_and_the_rest_stays_a_frame(frame: bytes) -> None:
    kept = recorded(frame, content=False)
    assert kept is not None
    data = orjson.dumps(kept)
    assert not [word for word in said(orjson.loads(frame)) if word.encode() in data]
    if frame in COMMANDS:
        read = decode_command(data, max_bytes=1_000_000)
        assert type(read) is type(decode_command(frame, max_bytes=1_000_000))
    else:
        assert type(decode_server_frame(data)) is type(decode_server_frame(frame))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_redacted_log_has_the_same_shape(data: st.DataObject) -> None:
    events = data.draw(logs().flatmap(merged_somehow))
    kept = [decode_server_frame(_redacted(event)) for event in events]
    assert [type(event) for event in kept] == [type(event) for event in events]
    folded, whole = fold(kept), fold(events)  # type: ignore[arg-type]
    assert folded.last == whole.last
    assert [turn.status for turn in folded.turns.values()] == [
        turn.status for turn in whole.turns.values()
    ]
    assert [(first_seq(event), event.seq) for event in kept] == [  # type: ignore[arg-type,union-attr]
        (first_seq(event), event.seq) for event in events
    ]


def _redacted(event: LogEvent) -> bytes:
    kept = recorded(encode(event), content=False)
    if "text" in orjson.loads(encode(event)) and isinstance(kept, dict):
        text = getattr(event, "text", "")
        if isinstance(text, str):
            assert kept["text"] == (mark(len(text.encode())) if text else "")
    return orjson.dumps(kept)


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize(
    "frame",
    [
        {"type": "hello", "protocol": 1, "token": "k-123456"},
        {"type": "hello", "protocol": 1, "Token": "k-123456"},
        {"type": "hello", "client": {"name": "x", "token": "k-123456"}},
        {"type": "refresh", "id": "r", "token": "k-123456"},
        {"type": "Hello", "token": "k-123456"},
        {"token": ["k-123456"]},
    ],
    ids=str,
)
def test_no_credential_is_recorded(frame: dict[str, Any], content: bool) -> None:
    kept = recorded(orjson.dumps(frame), content=content)
    assert b"k-123456" not in orjson.dumps(kept)
    if "token" in frame:
        assert kept is not None
        assert kept["token"] == SECRET


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize(
    "data", ["k-123456", '"k-123456"', '["k-123456"]', b"\xffk", "[" * 5000, "{" * 5000]
)
def test_what_is_no_object_is_not_recorded(data: str | bytes, content: bool) -> None:
    assert recorded(data, content=content) is None


def test_content_is_recorded_on_request() -> None:
    frame = {"type": "send", "id": "s", "conversation": "c", "content": "Hello"}
    assert recorded(orjson.dumps(frame), content=True) == frame
    assert recorded(orjson.dumps(frame), content=False) == frame | {"content": "«5»"}


def test_what_nobody_thought_of_is_left_out() -> None:
    frame = b'{"type":"send","secret words":1,"x":"y","model":"two words"}'
    assert recorded(frame, content=False) == {"type": "send", "model": "«9»"}


def test_what_stands_deep_is_a_length() -> None:
    deep = b'{"config":' * 40 + b"1" + b"}" * 40
    kept = recorded(deep, content=False)
    assert len(orjson.dumps(kept)) < 200
    assert msgspec.json.encode(kept).count(b"config") == 8
