"""What vendors put into a stream in place of an error."""

from typing import Any

import orjson
import pytest

from tests.providers.decoding import DONE, Decoded, choice, decode, delta, event, finish
from wsserver.engine.model import Failure

COUNTS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def minimax(status: int, message: str = "", **members: Any) -> dict[str, Any]:
    status_of = {"status_code": status, "status_msg": message}
    return {"id": "c", "choices": [], **members, "base_resp": status_of}


def failure(decoded: Decoded) -> Failure:
    assert decoded.end.reason == "error"
    assert decoded.end.failure is not None
    return decoded.end.failure


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (1000, "upstream_error", True),
        (1001, "upstream_timeout", True),
        (1002, "upstream_rate_limited", True),
        (1004, "upstream_auth", False),
        (1008, "upstream_rate_limited", False),
        (1026, "content_filter", False),
        (1039, "upstream_rate_limited", True),
        (2013, "upstream_error", False),
        (4711, "upstream_error", True),
    ],
)
def test_minimax_says_how_it_went_in_a_member_of_its_own(
    status: int, code: str, retryable: bool
) -> None:
    told = failure(decode(delta(content="a") + event(minimax(status, "it said"))))
    assert (told.code, told.retryable) == (code, retryable)
    assert (told.message, told.upstream_code) == ("it said", str(status))


@pytest.mark.parametrize(
    "last",
    [
        minimax(1008, "no money", choices=None),
        minimax(1008, "no money", usage=COUNTS),
        minimax(1008, "no money", choices=[{"index": 0, "delta": {"content": ""}}]),
        minimax(1008, "no money", choices=[{"finish_reason": "stop", "index": 0}]),
    ],
)
@pytest.mark.parametrize("end", [b"", DONE])
def test_whatever_stands_beside_it(last: dict[str, Any], end: bytes) -> None:
    for content_type, body in (
        ("text/event-stream", delta(content="a") + event(last) + end),
        ("application/json", orjson.dumps(last)),
    ):
        told = failure(decode(body, content_type=content_type))
        assert (told.message, told.upstream_code) == ("no money", "1008")


def test_minimax_says_that_it_went_well() -> None:
    fine = minimax(0, "success", choices=[{"index": 0, "delta": {"content": "a"}}])
    assert decode(event(fine) + finish("stop")).said == ("a", "stop")
    assert decode(event(fine)).said == ("a", "incomplete")
    assert decode(event(minimax(0)) + DONE).said == ("", "stop")
    whole = choice(message={"content": "ab"}, finish_reason="stop")
    whole = event({**orjson.loads(whole[6:]), **minimax(0)} | {"choices": []})
    assert decode(delta(content="ab") + finish("stop") + whole).said == ("ab", "stop")


@pytest.mark.parametrize(
    ("payload", "code", "upstream_code"),
    [
        # Databricks, and Baidu's older API.
        ({"error_code": "RESOURCE_EXHAUSTED", "message": "no"}, 429, "R"),
        ({"error_code": 336003, "error_msg": "no"}, 500, "336003"),
        # Cloudflare.
        ({"success": False, "errors": [{"code": 7001, "message": "no"}]}, 500, "7001"),
        # iFlytek, with the header of its older API and without.
        ({"header": {"code": 10013, "message": "no", "status": 2}}, 500, "10013"),
        # Tencent's gateway.
        ({"Response": {"Error": {"Code": "AuthFailure", "Message": "no"}}}, 500, "A"),
        # Bedrock, passed on as it is.
        ({"throttlingException": {"message": "no"}}, 429, "t"),
        ({"internalServerException": {"message": "no"}}, 500, "i"),
        # Google's, in a list; xAI; Mistral; vLLM.
        ([{"error": {"code": 429, "message": "no", "status": "R"}}], 429, "R"),
        ({"code": "The key is bad", "error": "no"}, 500, "T"),
        (
            {"object": "error", "message": "no", "type": "invalid_request_error"},
            400,
            "i",
        ),
    ],
)
@pytest.mark.parametrize("end", [b"", DONE, finish("stop") + DONE])
def test_errors_that_say_so(
    payload: Any, code: int, upstream_code: str, end: bytes
) -> None:
    told = failure(decode(delta(content="a") + event(payload) + end))
    codes = {429: "upstream_rate_limited", 500: "upstream_error", 400: "upstream_error"}
    assert (told.code, told.message) == (codes[code], "no")
    assert told.upstream_code is not None
    assert told.upstream_code.startswith(upstream_code)


@pytest.mark.parametrize(
    "payload",
    [
        {"code": 10907, "message": "no", "sid": "s"},
        {"code": "InternalError", "message": "no", "request_id": "r"},
        {"output": {"code": "InternalError", "message": "no"}},
        {"code": "1302", "msg": "no", "success": False},
    ],
)
def test_errors_that_end_an_answer_without_saying_so(payload: dict[str, Any]) -> None:
    """iFlytek's, DashScope's and Zhipu's, where neither mark nor word follows."""
    told = failure(decode(delta(content="a") + event(payload)))
    assert told.message == "no"
    assert told.upstream_code in {"10907", "InternalError", "1302"}
    assert decode(delta(content="a") + event(payload) + DONE).said == ("a", "stop")


@pytest.mark.parametrize(
    "payload",
    [
        {"code": 0, "message": "Success", "sid": "s"},
        {"code": 200, "msg": "ok", "success": True},
        {"header": {"code": 0, "message": "Success", "status": 2}},
        {"error_code": 0, "message": "ok", "error": None, "errors": []},
        {"base_resp": {"status_code": 0, "status_msg": "success"}},
        {"type": "ping"},
    ],
)
def test_what_says_that_all_is_well_is_no_error(payload: dict[str, Any]) -> None:
    assert decode(delta(content="a") + event(payload)).said == ("a", "incomplete")
    assert decode(event(payload)).said == ("", "incomplete")
    assert decode(event(payload) + DONE).said == ("", "stop")


@pytest.mark.parametrize("end", [b"", DONE])
def test_words_that_are_no_json_are_why_there_is_no_answer(end: bytes) -> None:
    told = failure(decode(b"data: Internal Server Error\n\n" + end))
    assert (told.code, told.message) == ("upstream_error", "Internal Server Error")


def test_words_beside_an_answer_are_nothing() -> None:
    words = b"data: ping\n\n"
    whole = decode(words + delta(content="a") + words + finish("stop") + DONE)
    assert (whole.text, whole.end.reason) == ("a", "stop")
    broken = decode(words + delta(content="a") + words)
    assert (broken.text, broken.end.reason) == ("a", "incomplete")
    assert decode(b"data: \n\n").end.reason == "incomplete"
    assert decode(b"data: Internal Server").end.reason == "incomplete"


@pytest.mark.parametrize("sign", [b"ping", b": keep-alive", b"1764469200 12", b"-"])
def test_a_sign_of_life_is_no_error(sign: bytes) -> None:
    assert decode(b"data: %b\n\n" % sign).end.reason == "incomplete"
    assert decode(b"data: %b\n\n" % sign + DONE).end.failure is None
