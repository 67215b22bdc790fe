"""What the body of a refusal says, wherever it ends and however it is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.model import Failure
from wsserver.providers.exact_json import read_json, write_json
from wsserver.providers.faults.failures import failure_from_status, without_key
from wsserver.providers.faults.refusals import read_refusal

WHOLE = b'{"error":{"message":"Wrong key: sk-0123456789.","code":"bad","type":"t"}}'


def told(content: bytes, content_type: str | None = None, status: int = 400) -> Failure:
    said = read_refusal(content, content_type)
    return failure_from_status(status, said.payload, flaw=said.flaw)


def test_wherever_it_is_cut_no_json_and_no_key_is_shown() -> None:
    for end in range(1, len(WHOLE)):
        failure = without_key(told(WHOLE[:end], "application/json"), "sk-0123456789")
        assert failure.message.startswith("HTTP status 400; its explanation was cut")
        assert not set('{}[]"') & set(failure.message)
        assert "sk-0" not in failure.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"err', "."),
        (b'{"error":{"code":"bad","message"', None),
        (b'{"error":{"code":"bad",', None),
        (b'{"error":"no such mod', ", after: no such mod"),
        (b'[{"error":{"message":"a b', ", after: a b"),
        (b'{"message":"a\nb', ", after: a b"),
        (b'{"message":"\xff b', ", after: \ufffd b"),
        (b'\xef\xbb\xbf{"message":"a', ", after: a"),
        (b'{"detail":[{"loc":["body",1],"msg":"field req', ", after: field req"),
        (b'{"detail":{"a":[{"b":"c', "."),
        (b'{"error":{"message":"{\\"error\\": {\\"mess', "."),
        ('{"message":"né'.encode("utf-16"), ", after: né"),
        (b'"no such mod', ", after: no such mod"),
    ],
)
def test_what_can_be_understood(content: bytes, said: str | None) -> None:
    code = "" if said else " (bad)"
    expected = f"HTTP status 400{code}; its explanation was cut off{said or '.'}"
    assert told(content).message == expected


@pytest.mark.parametrize(
    ("content", "content_type", "message"),
    [
        (b'{"message":"a"}{"message":"b"}', None, "a"),
        (b'{"message":"a"}\n<html>', None, "a"),
        (b'data: {"error":{"message":"a"}}\n\ndata: [DONE]\n\n', None, "a"),
        (b': hi\n\nevent: error\ndata: {"message":"a"}\n\n', "text/event-stream", "a"),
        (b"data: [DONE]\n\n", None, "data: [DONE]"),
        (b"{'error': 'a'}", None, "HTTP status 400; its explanation can't be read."),
        (b"[error] no such model", None, "[error] no such model"),
        (b"{model} is not known", None, "{model} is not known"),
        (b'"a" is no model', None, '"a" is no model'),
        ("né".encode("latin-1"), "text/plain; charset=ISO-8859-1", "né"),
        ("né".encode(), "text/plain; charset=ISO-8859-1", "né"),
        ("模型".encode("gbk"), 'text/plain; charset="GBK"', "模型"),
        (b'{"message":"n\xe9"}', "application/json; charset=latin1", "né"),
        (b"n\xe9", "text/plain; charset=gbzip2", "n\ufffd"),
        (b"n\xe9", "text/plain; charset=hex", "n\ufffd"),
        (b"n\xe9", None, "n\ufffd"),
        ('{"message":"né"}'.encode("utf-16-le"), None, "né"),
        ('{"message":"né"}'.encode("utf-32"), None, "né"),
        (b"\0\0\0\x18ftypmp42", None, "HTTP status 400"),
        (b"\0\x01\x02\x03", None, "HTTP status 400"),
        (b"\x1f\x8b\x08\0", None, "HTTP status 400"),
        (b"", None, "HTTP status 400"),
        (b" \r\n ", "application/json", "HTTP status 400"),
        (b"null", None, "HTTP status 400"),
        (b"{}", None, "HTTP status 400"),
        (
            b"\xef\xbb\xbf<!DOCTYPE html>\n<title>\n 502 Bad\n &amp; ugly</title>",
            "text/html",
            "502 Bad & ugly",
        ),
        (b"<html><head><title>502 Bad Gatew", "text/html", "HTTP status 400"),
        (b"Oops: <html><body>no", "text/html", "HTTP status 400"),
        (b"a < b", None, "a < b"),
        (
            b"<?xml version='1.0'?><Error><Code>A</Code><Message>No.</Message></Error>",
            "application/xml",
            "No.",
        ),
    ],
)
def test_bodies_of_other_kinds(
    content: bytes, content_type: str | None, message: str
) -> None:
    assert told(content, content_type).message == message


def test_what_is_cut_off_still_says_which_fault_it_was() -> None:
    failure = told(b'{"error":{"code":"context_length_exceeded","mess', None, 500)
    assert (failure.code, failure.retryable) == ("context_length", False)


NAMES = st.sampled_from(["error", "message", "code", "detail", "a"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
)


@given(JSON, st.integers(0, 200))
def test_the_beginning_of_any_json(value: Any, end: int) -> None:
    whole = write_json(value).encode("utf-8", "surrogatepass")
    refusal = read_refusal(whole[:end], None)
    failure = failure_from_status(500, refusal.payload, flaw=refusal.flaw)
    assert failure.message
    if end >= len(whole):
        assert refusal.flaw is None
        assert refusal.payload == read_json(whole) or not whole.strip()


@given(st.binary(), st.text())
def test_any_bytes(content: bytes, content_type: str) -> None:
    refusal = read_refusal(content, content_type)
    assert failure_from_status(500, refusal.payload, flaw=refusal.flaw).message


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("bad key sk-0123456789, so", "bad key ***, so"),
        ("bad key sk-0123", "bad key ***"),
        ("bad key sk-", "bad key sk-"),
        ("sk-0123456789 sk-01234", "*** ***"),
    ],
)
def test_a_key_is_taken_out_whole_or_cut(message: str, shown: str) -> None:
    failure = Failure(code="upstream_auth", message=message, retryable=False)
    assert without_key(failure, "sk-0123456789").message == shown
    assert without_key(failure, None).message == message
