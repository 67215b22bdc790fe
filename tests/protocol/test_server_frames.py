"""What a client reads from the server, and what `encode` writes."""

import math
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given

from protocol.codec import UnknownFrame, decode_server_frame, encode
from protocol.commands import Ping, Send
from protocol.control import ControlFrame, ErrorFrame, Reply
from protocol.events import LogEvent, SkipEvent, TurnErrorEvent
from protocol.frame_error import FrameError
from tests.protocol.texts import whole_text


def test_each_type_of_frame_is_read_and_written_back(server_frames: list[str]) -> None:
    read = [decode_server_frame(line) for line in server_frames]
    assert {type(one) for one in read} == {*get_args(LogEvent), *get_args(ControlFrame)}
    for line, one in zip(server_frames, read, strict=True):
        assert orjson.loads(encode(one)) == orjson.loads(line)
        assert decode_server_frame(line.encode()) == one


def test_an_error_with_a_conversation_is_an_event_and_without_is_not() -> None:
    control = b'{"type":"error","code":"a","message":"b","retryable":true}'
    event = control[:-1] + b',"conversation":"c","seq":2,"turn":1}'
    assert isinstance(decode_server_frame(control), ErrorFrame)
    assert isinstance(decode_server_frame(event), TurnErrorEvent)


@pytest.mark.parametrize(
    ("members", "skip"),
    [
        ({}, None),
        ({"conversation": "c"}, None),
        ({"seq": 3}, None),
        ({"conversation": "c", "seq": 0}, None),
        ({"conversation": 5, "seq": 3}, None),
        ({"conversation": "c", "seq": 3, "x": 1}, (None, 3)),
        ({"conversation": "c", "seq": 3, "first": 2}, (2, 3)),
    ],
)
def test_an_unknown_frame_is_a_value_that_says_which_numbers_it_used_up(
    members: dict[str, Any], skip: tuple[int | None, int] | None
) -> None:
    read = decode_server_frame(orjson.dumps({"type": "later", **members}))
    expected = skip and SkipEvent(conversation="c", first=skip[0], seq=skip[1])
    assert read == UnknownFrame(type="later", skip=expected)


@pytest.mark.parametrize(
    ("data", "code", "param"),
    [
        (b"", "bad_json", None),
        (b"\xff", "bad_json", None),
        (b"[]", "bad_json", None),
        (b"{}", "bad_frame", "$.type"),
        (b'{"type":5}', "bad_frame", "$.type"),
        (b'{"type":"delta","conversation":"c","turn":1,"text":"x"}', "bad_frame", "$.seq"),
        (b'{"type":"error","code":"x","message":"y"}', "bad_frame", "$.retryable"),
        (b'{"type":"error","conversation":"c","code":"x","message":"y"}', "bad_frame", "$.seq"),
        (b'{"type":"pong","t":' + b"[" * 50_000 + b"}", "bad_frame", "$.t"),
        (b'{"type":"later","t":"\\ud800"}', "bad_json", None),
    ],
)  # fmt: skip
def test_what_is_no_frame_is_refused(data: bytes, code: str, param: str | None) -> None:
    with pytest.raises(FrameError) as caught:
        decode_server_frame(data)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"\udc00": 1}, object(), {None: 1}, [10**5000], type],
)
def test_what_has_no_form_in_json_is_not_written(value: Any) -> None:
    with pytest.raises(FrameError, match="`ping` frame can't be written"):
        encode(Ping(t=value))


def test_too_deep_a_value_is_not_written() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FrameError):
        encode(Ping(t=deep))
    while deep:
        deep = deep.pop()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_written_as_null(value: float) -> None:
    assert encode(Ping(t=[value])) == b'{"type":"ping","t":[null]}'


@given(whole_text)
def test_text_survives(text: str) -> None:
    frame = Send(id="a", conversation="c", content=text)
    assert orjson.loads(encode(frame))["content"] == text


def test_absent_members_are_not_written() -> None:
    assert encode(Ping()) == b'{"type":"ping"}'


def test_frames_do_not_change() -> None:
    # wsserver.turns fills a reply in while it decides; all others are values.
    frames = {*get_args(LogEvent), *get_args(ControlFrame)} - {Reply}
    assert [one for one in frames if not one.__struct_config__.frozen] == []
