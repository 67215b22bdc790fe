"""What single vendors and gateways do otherwise than everybody else."""

from typing import Any

import orjson
import pytest

from tests.providers.decoding import (
    DONE,
    call,
    choice,
    decode,
    delta,
    event,
    finish,
    raw,
)
from wsserver.engine.model import Usage

COUNTS = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
BUSY = {"error": {"message": "busy", "code": 503}}


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("ERROR_TOXIC", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("max_new_tokens", "length"),
        ("something new: stop", "incomplete"),
    ],
)
def test_reasons(word: str, reason: str) -> None:
    assert decode(delta(content="a") + finish(word) + DONE).said == ("a", reason)


@pytest.mark.parametrize(
    "error",
    [
        event([BUSY]),
        b"error: " + orjson.dumps(BUSY["error"]) + b"\n\n",
        b"error: busy\n\n",
        orjson.dumps(BUSY) + b"\n\n",
        orjson.dumps(BUSY) + b"\n",
        orjson.dumps({"error": "busy"}),
        choice(delta={}, finish_reason="error")[:-3]
        + b',"x_groq":{"error":"busy"}}\n\n',
    ],
    ids=["list", "field", "words", "bare", "bare at the end", "no line end", "groq"],
)
@pytest.mark.parametrize("cut", [0, 90, 100, 110])
def test_errors_in_odd_places(error: bytes, cut: int) -> None:
    mark = DONE if error.endswith(b"\n\n") else b""
    decoded = decode(delta(content="a") + error + mark, cuts=[cut])
    assert decoded.said == ("a", "error")
    assert decoded.end.failure is not None
    assert decoded.end.failure.message == "busy"


@pytest.mark.parametrize(
    "payload",
    [
        {"message": "slow down", "__type": "ThrottlingException"},
        {"code": 1302, "msg": "slow down", "success": False},
        {"detail": "slow down"},
    ],
)
def test_an_error_without_the_name_is_no_whole_answer(payload: dict[str, Any]) -> None:
    role = delta(role="assistant", content="")
    decoded = decode(role + event(payload) + DONE)
    assert decoded.said == ("", "error")
    assert decoded.end.failure is not None
    assert decoded.end.failure.message == "slow down"
    # Beside an answer that is whole it may be a notice.
    assert decode(event(payload) + delta(content="a") + DONE).said == ("a", "stop")
    assert decode(event(payload) + finish("stop") + DONE).said == ("", "stop")
    assert decode(event(payload) + finish("new")).said == ("", "incomplete")
    assert decode(role + event(payload)).said == ("", "error")
    # Where one with a name of its own ends the answer that is why.
    named = payload.keys() & {"code", "__type"}
    broken = decode(delta(content="a") + event(payload)).said
    assert broken == ("a", "error" if named else "incomplete")


def test_usage_and_ids_in_a_member_of_ones_own() -> None:
    last = choice(delta={}, finish_reason="stop")
    payload = {**orjson.loads(last[6:]), "x_groq": {"id": "r", "usage": COUNTS}}
    decoded = decode(delta(content="a") + event(payload) + DONE)
    assert decoded.said == ("a", "stop")
    assert decoded.end.usage == Usage(input_tokens=3, output_tokens=4)
    both = {**payload, "usage": {**COUNTS, "prompt_tokens": 5}}
    assert decode(event(both)).end.usage == Usage(input_tokens=5, output_tokens=4)


@pytest.mark.parametrize(
    ("members", "reasoning"),
    [
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}, ""),
        ({"reasoning": "hm", "reasoning_details": [{"text": "hm"}]}, "hm"),
        ({"reasoning": "hm", "reasoning_details": [{"text": "another"}]}, "hm"),
        ({"reasoning": "hm", "reasoning_details": []}, "hm"),
    ],
)
def test_thinking_in_detail(members: dict[str, Any], reasoning: str) -> None:
    decoded = decode(delta(**members) + delta(content="a") + finish("stop") + DONE)
    assert decoded.reasoning == reasoning
    assert decoded.said == ("a", "stop")


def test_a_call_told_to_old_clients_too_is_one() -> None:
    function = {"name": "f", "arguments": '{"a":1}'}
    entry = call('{"a":1}', name="f", index=0, id="1")
    body = delta(tool_calls=[entry], function_call=function) + finish("tool_calls")
    assert decode(body).calls == [("f", '{"a":1}')]


@pytest.mark.parametrize("mark", ["[done]", '"[DONE]"', "[Done] "])
def test_end_marks_in_odd_clothes(mark: str) -> None:
    assert decode(delta(content="a") + raw(mark)).said == ("a", "stop")


LINES = [
    {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]},
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
@pytest.mark.parametrize("content_type", ["application/x-ndjson", None])
def test_chunks_on_lines_without_a_stream_around_them(
    end: bytes, content_type: str | None
) -> None:
    lines = [orjson.dumps(line) for line in LINES]
    body = end.join(lines) + end
    assert decode(body, content_type=content_type).said == ("ab", "stop")
    alone = decode(lines[0] + end, content_type=content_type)
    assert alone.said == ("a", "incomplete")
    assert decode(body, aborted=True).said == ("ab", "stop")
    failed = decode(lines[0] + end + orjson.dumps(BUSY), content_type=content_type)
    assert failed.said == ("a", "error")


def test_a_list_of_chunks_has_to_say_that_it_is_whole() -> None:
    assert decode(orjson.dumps(LINES)).said == ("ab", "stop")
    assert decode(orjson.dumps(LINES[:1])).said == ("a", "incomplete")


def test_lines_of_another_api_are_no_answer() -> None:
    message = {"role": "assistant", "content": "secret"}
    line = orjson.dumps({"message": message, "done": False}) + b"\n"
    for body in (line, line * 2):
        decoded = decode(body, content_type="application/x-ndjson")
        assert decoded.said == ("", "error")
        assert decoded.end.failure is not None
        assert "secret" not in decoded.end.failure.message
