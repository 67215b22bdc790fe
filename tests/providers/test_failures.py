"""What vendors say when something is wrong, and what a client is told."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.model import Failure
from wsserver.providers.faults.failures import (
    MAX_MESSAGE_CHARS,
    failure_from_payload,
    failure_from_status,
    read_retry_after,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def of_status(status: int, **error: Any) -> Failure:
    return failure_from_status(status, {"error": error} if error else None)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (302, "upstream_error", False),
        (400, "upstream_error", False),
        (401, "upstream_auth", False),
        (402, "upstream_rate_limited", False),
        (403, "upstream_auth", False),
        (404, "upstream_error", False),
        (405, "upstream_error", False),
        (408, "upstream_timeout", True),
        (409, "upstream_error", True),
        (413, "context_length", False),
        (422, "upstream_error", False),
        (425, "upstream_error", False),
        (429, "upstream_rate_limited", True),
        (500, "upstream_error", True),
        (501, "upstream_error", True),
        (502, "upstream_unavailable", True),
        (503, "upstream_unavailable", True),
        (504, "upstream_timeout", True),
        (524, "upstream_timeout", True),
        (529, "upstream_unavailable", True),
        (599, "upstream_error", True),
    ],
)
def test_statuses(status: int, code: str, retryable: bool) -> None:
    for payload in (None, "", {}, {"error": {"message": "so it is"}}, "<html>"):
        failure = failure_from_status(status, payload)
        assert (failure.code, failure.retryable) == (code, retryable)
        assert failure.message


@given(st.integers(400, 499))
def test_4xx_are_final_but_for_three(status: int) -> None:
    assert of_status(status).retryable == (status in {408, 409, 429})


@pytest.mark.parametrize("member", ["code", "type"])
def test_a_spent_quota_is_final(member: str) -> None:
    failure = of_status(429, message="pay", **{member: "insufficient_quota"})
    assert (failure.code, failure.retryable) == ("upstream_rate_limited", False)


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded"},
        {"code": 400, "type": "exceed_context_size_error"},
        {"message": "This model's maximum context length is 4096 tokens. However, …"},
        {"message": "request (6030 tokens) exceeds the available context size (2048)"},
        {"message": "prompt is too long: 212345 tokens > 200000 maximum"},
        {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"},
        {"message": "The input token count (9) exceeds the maximum number of tokens"},
        {"message": "Input is too long for requested model."},
        {"message": "This model's maximum prompt length is 131072 but the request"},
        {"message": "Please reduce the length of the messages or completion."},
        {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9"},
        {"message": "`inputs` must have less than 1024 tokens. Given: 2000"},
        {"message": "Requested tokens (9) exceed context window of 2048"},
        {"message": "the request exceeds the model's Context Length"},
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_prompt_that_is_too_long(error: dict[str, Any], status: int) -> None:
    failure = of_status(status, **error)
    assert (failure.code, failure.retryable) == ("context_length", False)


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens=9 cannot be greater than max_model_len=8",
        "context deadline exceeded",
        "The model does not exist",
        "Field 'temperature': type must be number",
        "the connection is too long idle",
    ],
)
def test_what_is_not_a_prompt_that_is_too_long(message: str) -> None:
    assert of_status(400, message=message).code == "upstream_error"


@pytest.mark.parametrize("status", [401, 403, 429])
def test_words_about_length_do_not_hide_the_status(status: int) -> None:
    failure = of_status(status, message="tokens per minute: reduce the length of …")
    assert failure.code != "context_length"


def test_litellm_without_a_database_knows_no_key() -> None:
    failure = of_status(400, message="No connected db.", type="no_db_connection")
    assert (failure.code, failure.retryable) == ("upstream_auth", False)
    assert failure.message == "No connected db."


@pytest.mark.parametrize(
    "code", ["content_filter", "content_policy_violation", "data_inspection_failed"]
)
def test_a_request_that_was_filtered_out(code: str) -> None:
    failure = of_status(400, message="no", code=code)
    assert (failure.code, failure.retryable) == ("content_filter", False)


@pytest.mark.parametrize(
    ("payload", "code", "retryable"),
    [
        ({"error": {"message": "m", "code": 503}}, "upstream_unavailable", True),
        ({"error": {"message": "m", "code": "429"}}, "upstream_rate_limited", True),
        ({"error": {"message": "m", "code": 400}}, "upstream_error", False),
        ({"error": {"message": "m", "type": "overloaded_error"}}, "upstream_unavailable", True),
        ({"error": {"message": "m", "type": "rate_limit_error"}}, "upstream_rate_limited", True),
        ({"error": {"message": "m", "status": "RESOURCE_EXHAUSTED"}}, "upstream_rate_limited", True),
        ({"error": {"message": "m", "type": "timeout_error"}}, "upstream_timeout", True),
        ({"error": {"message": "m", "code": "invalid_api_key"}}, "upstream_auth", False),
        ({"error": {"message": "m", "type": "invalid_request_error"}}, "upstream_error", False),
        ({"error": {"message": "m", "type": "server_error"}}, "upstream_error", True),
        ({"error": {"message": "m", "code": "insufficient_quota"}}, "upstream_rate_limited", False),
        ({"error": {"message": "m", "code": "context_length_exceeded"}}, "context_length", False),
        ({"error": "m"}, "upstream_error", True),
        ({"errors": [{"message": "m", "code": 502}]}, "upstream_unavailable", True),
        ({"error_message": "m", "error_type": "overloaded"}, "upstream_unavailable", True),
        ({"object": "error", "message": "m", "code": 404}, "upstream_error", False),
        ([{"error": {"message": "m", "code": 503}}], "upstream_unavailable", True),
        ("m", "upstream_error", True),
    ],
)  # fmt: skip
def test_errors_inside_an_answer(payload: object, code: str, retryable: bool) -> None:
    failure = failure_from_payload(payload, "otherwise")
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.message == "m"


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"detail": "no such route"}, "no such route"),
        ({"detail": [{"msg": "field required"}]}, '[{"msg":"field required"}]'),
        ({"error": {"error": "inner"}}, "inner"),
        ({"error": {}, "message": "beside"}, "beside"),
        ({"error": {"code": 1}, "message": "beside"}, "beside"),
        ({"error": True}, "otherwise"),
        ({"message": {"a": 1}}, '{"a":1}'),
        ({"message": ""}, "otherwise"),
        (None, "otherwise"),
        ([], "otherwise"),
        (5, "otherwise"),
        ("  plain words\n", "plain words"),
        ("<html><title>502 Bad Gateway</title>", "502 Bad Gateway"),
        ("<p>no title", "otherwise"),
        ({"html-message": "Message: fetch failed"}, "Message: fetch failed"),
        ({"html-message": "<html><title>502</title>"}, "502"),
        ({"html-message": None, "message": "beside"}, "beside"),
        ({"message": "half \ud83d"}, "half \ufffd"),
        ({"message": "x" * 5000}, "x" * MAX_MESSAGE_CHARS),
    ],
)
def test_messages(payload: object, message: str) -> None:
    assert failure_from_payload(payload, "otherwise").message == message


@pytest.mark.parametrize(
    ("error", "upstream_code"),
    [
        ({"code": "a", "type": "b"}, "a"),
        ({"code": 400, "type": "b"}, "b"),
        ({"code": 400}, "400"),
        ({"code": 40303}, "40303"),
        ({"status": "UNAVAILABLE", "code": 503}, "UNAVAILABLE"),
        ({"message": "m"}, None),
        ({"code": "x" * 1000}, "x" * 128),
        ({"code": ["a"], "type": {"b": 1}}, None),
    ],
)
def test_the_upstreams_own_code(
    error: dict[str, Any], upstream_code: str | None
) -> None:
    failure = failure_from_payload({"error": error}, "otherwise")
    assert failure.upstream_code == upstream_code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:59:30 GMT"}, 0.0),
        (
            {
                "retry-after": "Sun, 01 Mar 2026 13:00:30 GMT",
                "date": "Sun, 01 Mar 2026 13:00:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Sun, 99 Mar 2026 12:00:30 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, NOW) == seconds


def test_a_final_failure_names_no_time_to_wait() -> None:
    assert failure_from_status(429, None, 5.0).retry_after_seconds == 5.0
    assert failure_from_status(400, None, 5.0).retry_after_seconds is None


def test_a_page_that_never_closes_its_tags_takes_no_time() -> None:
    page = "<title " * 300_000  # minutes, were the rest looked at from each of them
    assert failure_from_payload(page, "otherwise").message == "otherwise"


NAMES = st.sampled_from(
    ["error", "errors", "message", "code", "type", "detail", "status", "error_message"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES | st.text(), inner),
)


@given(JSON, st.integers(100, 599))
def test_whatever_the_payload_is(payload: object, status: int) -> None:
    for failure in (
        failure_from_payload(payload, "otherwise"),
        failure_from_status(status, payload),
    ):
        assert failure.message
        failure.message.encode()
