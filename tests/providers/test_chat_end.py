"""How an answer ends: reasons, counts, errors, and answers that are no stream."""

from typing import Any

import orjson
import pytest

from tests.providers.decoding import (
    DONE,
    call,
    calls,
    choice,
    decode,
    delta,
    event,
    finish,
    raw,
)
from wsserver.engine.model import Usage
from wsserver.providers.chat.decoder import ChatDecoder

CALL = calls(call('{"a":1}', name="f", index=0, id="1"))


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("tool_calls", "stop"),
        ("function_call", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("error", "error"),
        ("network_error", "error"),
        ("abort", "incomplete"),
        ("something new", "incomplete"),
    ],
)
def test_reasons(word: str, reason: str) -> None:
    end = decode(delta(content="a") + finish(word) + DONE).end
    assert end.reason == reason
    assert end.upstream_reason == word


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "tool_calls"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("error", "error"),
        ("something new", "incomplete"),
        (None, "tool_calls"),
        ("", "tool_calls"),
    ],
)
def test_reasons_with_calls(word: str | None, reason: str) -> None:
    decoded = decode(CALL + finish(word) + DONE)
    assert decoded.end.reason == reason
    assert decoded.calls == [("f", '{"a":1}')]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (DONE, ("", "stop")),
        (b"", ("", "incomplete")),
        (b"\n\n\n", ("", "incomplete")),
        (b": only\n\n: comments\n\n", ("", "incomplete")),
        (b"id: 1\n\n", ("", "incomplete")),
        (b"\xef\xbb", ("", "incomplete")),
        (CALL, ("", "incomplete")),
        (delta(content="a"), ("a", "incomplete")),
        (delta(content="a") + finish("stop"), ("a", "stop")),
        (delta(content="a") + finish(""), ("a", "incomplete")),
        (finish("stop") + delta(content="a") + finish("length"), ("a", "length")),
        (finish("length") + finish("stop") + finish(None), ("", "stop")),
        (finish("stop") + choice(delta={"content": "a"}), ("a", "stop")),
    ],
)
@pytest.mark.parametrize("aborted", [False, True])
def test_ends(body: bytes, said: tuple[str, str], aborted: bool) -> None:
    assert decode(body, aborted=aborted).said == said


def test_the_end_comes_with_the_mark_and_once() -> None:
    decoder = ChatDecoder(content_type=None)
    assert not decoder.finished
    events = decoder.feed(finish("stop") + DONE)
    assert decoder.finished
    assert len(events) == 1
    assert decoder.feed(DONE + delta(content="late")) == []
    assert decoder.close() == []


def counts(given: object, made: object, **more: object) -> dict[str, Any]:
    return {"prompt_tokens": given, "completion_tokens": made, **more}


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (event({"choices": [], "usage": counts(3, 4)}), (3, 4)),
        (event({"choices": None, "usage": counts(3, 4)}), (3, 4)),
        (event({"usage": counts(3, 4)}), (3, 4)),
        (choice(delta=None, usage=counts(3, 4)), (3, 4)),
        (event({"usage": counts(3, 4)}) + event({"usage": counts(5, 6)}), (5, 6)),
        (event({"usage": counts(3, 4)}) + event({"usage": None}), (3, 4)),
        (event({"usage": counts(3, 4)}) + event({"usage": {}}), (3, 4)),
        (event({"usage": {"input_tokens": 3, "output_tokens": 4}}), (3, 4)),
        (event({"usage": counts(3, None, total_tokens=7)}), (3, 4)),
        (event({"usage": counts(None, 4, total_tokens=7)}), (3, 4)),
        (event({"usage": counts(3.0, 4)}), (3, 4)),
        (event({"usage": counts(3, None)}), None),
        (event({"usage": counts(-1, 4)}), None),
        (event({"usage": counts("3", 4)}), None),
        (event({"usage": counts(True, 4)}), None),
        (event({"usage": counts(2**53, 4)}), None),
        (event({"usage": [1]}), None),
        (event({"choices": [{"index": 1, "usage": counts(3, 4)}]}), None),
        (raw('{"usage":{"prompt_tokens":1e400,"completion_tokens":4}}'), None),
    ],
)
def test_usage(body: bytes, usage: tuple[int, int] | None) -> None:
    given = decode(delta(content="a") + body + DONE).end.usage
    assert (given and (given.input_tokens, given.output_tokens)) == usage


@pytest.mark.parametrize(
    "more",
    [
        {
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
        {
            "prompt_cache_hit_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "prompt_tokens_details": None,
        },
    ],
)
def test_usage_in_detail(more: dict[str, Any]) -> None:
    end = decode(event({"usage": counts(3, 4, **more)})).end
    assert end.usage == Usage(
        input_tokens=3, output_tokens=4, cached_tokens=2, reasoning_tokens=1
    )


NOT_ERRORS = [{"error": value} for value in (None, "", {}, [], False, 0)]


@pytest.mark.parametrize("members", [*NOT_ERRORS, {"error_message": ""}])
def test_an_empty_error_is_none(members: dict[str, Any]) -> None:
    body = event({**members, "choices": [{"delta": {"content": "a"}}]})
    assert decode(body + finish("stop") + DONE).said == ("a", "stop")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (event({"error": {"message": "busy"}}), "busy"),
        (event({"error": "busy"}), "busy"),
        (event({"error": {"message": {"text": "busy"}}}), '{"text":"busy"}'),
        (event({"error": {"detail": "busy"}}), "busy"),
        (event({"error": True, "message": "busy"}), "busy"),
        (event({"choices": [], "error": {"msg": "busy"}}), "busy"),
        (event({"error_message": "busy", "error_type": "x"}), "busy"),
        (event({"error_type": "x", "message": "busy"}), "busy"),
        (event({"object": "error", "message": "busy", "code": 40303}), "busy"),
        (event({"type": "error", "message": "busy"}), "busy"),
        (event({"type": "error", "error": {"message": "busy"}}), "busy"),
        (b"event: error\n" + event({"message": "busy"}), "busy"),
        (b"event: error\n" + event("busy"), "busy"),
        (b"event: error\ndata: busy\n\n", "busy"),
        (b"event:error\ndata: so\ndata: busy\n\n", "so\nbusy"),
        (b'data: {"message":"busy"}\nevent: error\n\n', "busy"),
        (choice(delta={}, finish_reason="error", error={"message": "busy"}), "busy"),
        (finish("error") + event({"error": {"message": "busy"}}), "busy"),
        (event({"error": {"message": "busy"}}) + event({"error": "more"}), "busy"),
        (raw('{"error":{"message":"busy\\ud83d"}}'), "busy\ufffd"),
    ],
)
@pytest.mark.parametrize("end", [b"", DONE, finish("stop") + DONE])
def test_errors(body: bytes, message: str, end: bytes) -> None:
    decoded = decode(delta(content="a") + body + end)
    assert decoded.said == ("a", "error")
    assert decoded.end.failure is not None
    assert decoded.end.failure.message == message


@pytest.mark.parametrize(
    "body",
    [
        finish("error"),
        event({"error": {"code": 1}}),
        b"event: error\ndata:\n\n",
        b"event: error\ndata: null\n\n",
        event({"error_type": "x"}),
    ],
)
def test_an_error_without_reason_has_words_of_our_own(body: bytes) -> None:
    decoded = decode(delta(content="a") + body + DONE)
    assert decoded.said == ("a", "error")
    assert decoded.end.failure is not None
    assert decoded.end.failure.message.endswith(".")


def test_reading_goes_on_after_an_error() -> None:
    error = event({"error": {"message": "busy"}})
    body = delta(content="a") + error + event({"usage": counts(3, 4)})
    decoder = ChatDecoder(content_type=None)
    decoder.feed(body)
    assert decoder.failed
    assert not decoder.finished
    assert decode(body).end.usage == Usage(input_tokens=3, output_tokens=4)


def test_an_event_with_another_name_is_a_chunk() -> None:
    body = b"event: chunk\n" + delta(content="a") + b"event: errors\n" + finish("stop")
    assert decode(body).said == ("a", "stop")


def test_the_name_error_holds_for_one_event() -> None:
    body = b"event: error\n\n" + delta(content="a") + finish("stop")
    assert decode(body).said == ("a", "stop")


def body_of(**members: Any) -> bytes:
    return orjson.dumps(members)


WHOLE = {"role": "assistant", "content": "all", "reasoning_content": "hm"}
COMPLETION = body_of(
    choices=[{"index": 0, "message": WHOLE, "finish_reason": "stop"}],
    usage=counts(3, 4),
)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "text/event-stream", None],
)
@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b" \r\n"])
@pytest.mark.parametrize("aborted", [False, True])
def test_a_completion_that_is_not_streamed(
    content_type: str | None, head: bytes, aborted: bool
) -> None:
    body = head + COMPLETION
    for cut in range(0, len(body), 7):
        decoded = decode(body, cuts=[cut], content_type=content_type, aborted=aborted)
        assert decoded.texts == ["all"]
        assert decoded.reasoning == "hm"
        assert decoded.end.reason == "stop"
        assert decoded.end.usage == Usage(input_tokens=3, output_tokens=4)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_a_stream_under_another_name(content_type: str) -> None:
    body = delta(content="a") + finish("stop") + DONE
    assert decode(body, content_type=content_type).said == ("a", "stop")


def test_a_completion_with_calls() -> None:
    message = {
        "content": None,
        "tool_calls": [call('{"a":1}', name="f", id="1"), call(name="g", id="2")],
    }
    body = body_of(choices=[{"message": message, "finish_reason": "tool_calls"}])
    decoded = decode(body)
    assert decoded.calls == [("f", '{"a":1}'), ("g", "{}")]
    assert decoded.end.reason == "tool_calls"
    assert [fragment.position for fragment in decoded.fragments] == [0, 1]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (body_of(choices=[{"message": WHOLE}]), "stop"),
        (body_of(choices=[{"message": WHOLE, "finish_reason": "length"}]), "length"),
        (body_of(choices=[{"text": "x", "finish_reason": "length"}]), "length"),
        (body_of(choices=[{"text": "x", "finish_reason": "stop"}]), "error"),
        (body_of(choices=[]), "incomplete"),
        (body_of(choices=None), "incomplete"),
        (body_of(error={"message": "busy"}), "error"),
        (body_of(error="busy", choices=[{"message": WHOLE}]), "error"),
        (body_of(detail="Not Found"), "error"),
        (body_of(object="response", output=[]), "error"),
        (b'[{"error":{"message":"busy"}}]', "error"),
        (b"[]", "error"),
        (b"{}", "error"),
        (COMPLETION[:-1], "error"),
        (COMPLETION * 2, "error"),
        (b"<!doctype html><title>Sign in</title>", "error"),
        (b"<html>", "error"),
        (b"{" * 100_000, "error"),
    ],
)
def test_bodies(body: bytes, reason: str) -> None:
    decoded = decode(body, content_type="application/json")
    assert decoded.end.reason == reason
    assert decoded.text in {"", "all"}
    assert (decoded.end.failure is not None) == (reason == "error")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (body_of(error={"message": "busy"}), "busy"),
        (body_of(detail="Not Found"), "Not Found"),
        (body_of(message="try later"), "try later"),
        (b'[{"error":{"message":"busy"}}]', "busy"),
        (b"<html><TITLE lang=en>Sign in</title>secret", "Sign in"),
    ],
)
def test_a_body_says_what_is_wrong(body: bytes, message: str) -> None:
    failure = decode(body, content_type=None).end.failure
    assert failure is not None
    assert failure.message == message


def test_a_body_that_broke_off_is_incomplete() -> None:
    for body in (COMPLETION[:-9], b"<html", b"{"):
        assert decode(body, aborted=True).said == ("", "incomplete")


@pytest.mark.parametrize(
    ("content_type", "reason"),
    [
        ("text/plain", "error"),
        ("text/event-stream", "incomplete"),
        (None, "incomplete"),
    ],
)
def test_plain_words(content_type: str | None, reason: str) -> None:
    body = b"upstream connect error"
    assert decode(body, content_type=content_type).said == ("", reason)


def test_a_body_without_end_is_not_collected_for_ever() -> None:
    decoder = ChatDecoder(content_type="application/json")
    piece = b'{"a":"' + b"x" * (1 << 20)
    events = [event for _ in range(17) for event in decoder.feed(piece)]
    assert decoder.finished
    assert decode(piece * 17).events == events


def test_another_apis_stream_is_never_a_whole_answer() -> None:
    legacy = event({"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]})
    responses = event({"type": "response.output_text.delta", "delta": "x"})
    messages = event({"type": "content_block_delta", "delta": {"text": "x"}})
    for body in (legacy, responses, messages):
        decoded = decode(body + DONE)
        assert decoded.said == ("", "error")
        assert decoded.end.failure is not None
        assert not decoded.end.failure.retryable


def test_events_of_another_kind_beside_an_answer_do_no_harm() -> None:
    other = event({"type": "message_metadata"})
    assert decode(other + delta(content="a") + DONE).said == ("a", "stop")
