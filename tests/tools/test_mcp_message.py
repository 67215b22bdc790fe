"""Messages of MCP servers, and what is none."""

import orjson
import pytest
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
)
from structlog.testing import capture_logs

from wsserver.tools.mcp.message import MessageReader


def read_message(line: bytes) -> JSONRPCMessage | None:
    messages = MessageReader("s").read(line)
    assert len(messages) <= 1
    return messages[0] if messages else None


def answer(result: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"result":%s}' % result.encode()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (rb"a\ud83d", "a\ufffd"),
        (rb"\uDE00b", "\ufffdb"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d\ud83d", "\\ud83d\ufffd"),
        (b"\xff" + rb"\ud83d", "\ufffd\ufffd"),
        (rb"\u0041\ud83d\u0042", "A\ufffdB"),
    ],
)
def test_half_a_character_is_replaced_and_nothing_else(
    written: bytes, text: str
) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"x":"%s"}}\n' % written
    message = read_message(line)
    assert isinstance(message, JSONRPCResponse)
    assert message.result == {"x": text}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            answer('{"x":' + "[" * 300 + "]" * 300 + "}"),
            "Invalid JSON: recursion limit",
        ),
        (answer("[]"), "no JSON-RPC message"),
        (b'{"id":7,"result":{}}', "no JSON-RPC message"),
    ],
)
def test_an_answer_that_is_none_is_an_error_for_who_waits(
    line: bytes, why: str
) -> None:
    with capture_logs() as lines:
        message = read_message(line)
    assert isinstance(message, JSONRPCError)
    assert message.id == 7
    assert message.error.message.startswith(f"what it said is not valid: {why}")
    assert [(one["event"], one["server"]) for one in lines] == [
        ("mcp_message_unreadable", "s")
    ]


@pytest.mark.parametrize(
    "line",
    [b"hello", b"", b"[]", b"3", b"{}", b'{"id":null}', b'{"id":7,"method":3}', b"{"],
)
def test_what_nobody_waits_for_is_nothing(line: bytes) -> None:
    assert read_message(line) is None


def test_a_byte_order_mark_is_passed_over() -> None:
    message = read_message(b"\xef\xbb\xbf" + answer("{}"))
    assert isinstance(message, JSONRPCResponse)


def test_other_messages_are_as_they_came() -> None:
    notice = {"jsonrpc": "2.0", "method": "m", "params": {"x": "é"}}
    message = read_message(orjson.dumps(notice))
    assert isinstance(message, JSONRPCNotification)
    assert message.params == {"x": "é"}


GOOD = b'{"jsonrpc":"2.0","id":1,"result":{"x":"\\ud83d"}}'
NOTICE = b'{"jsonrpc":"2.0","method":"m"}'


@pytest.mark.parametrize("around", [b"%b", b" \n%b\n", b"\xef\xbb\xbf%b"])
def test_each_message_of_a_batch_is_read_for_itself(around: bytes) -> None:
    reader = MessageReader("s")
    parts = [GOOD, NOTICE, b'{"id":2,"result":{}}', b"3", b"null", b"[]"]
    with capture_logs() as lines:
        messages = reader.read(around % (b"[" + b",".join(parts) + b"]"))
        again = reader.read(b"[" + NOTICE + b"]")
    good, notice, bad = messages
    assert isinstance(good, JSONRPCResponse)
    assert good.result == {"x": "\ufffd"}
    assert again == [notice]
    assert isinstance(bad, JSONRPCError)
    assert bad.id == 2
    assert bad.error.message == "what it said is not valid: no JSON-RPC message"
    loud = [line for line in lines if line["log_level"] == "warning"]
    assert [line["event"] for line in loud] == ["mcp_batch", "mcp_message_unreadable"]
    assert {line["server"] for line in loud} == {"s"}


@pytest.mark.parametrize("line", [b"[" + GOOD + b",", GOOD[:-3], b'{"id":'])
def test_what_is_cut_off_is_told_of(line: bytes) -> None:
    with capture_logs() as lines:
        assert MessageReader("s").read(line) == []
    assert lines[0]["event"] == "mcp_message_unreadable"
    assert lines[0]["why"].startswith("Invalid JSON: EOF")
