"""The ladder from exceptions to what clients are told."""

import msgspec
import pytest
import structlog

from protocol.codes import ERRORS
from protocol.control import ErrorFrame, Reply
from protocol.frame_error import FrameError
from wsserver.auth.principal import ForbiddenError, UnauthorizedError
from wsserver.connections.errors import error_body, error_frame
from wsserver.log.store import StoreError
from wsserver.turns.errors import refusal


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FrameError("bad_frame", "no", "$.x", "1"), "bad_frame"),
        (refusal("busy", "no"), "busy"),
        (StoreError("secret"), "store_unavailable"),
        (ForbiddenError("secret"), "forbidden"),
        (UnauthorizedError("secret"), "unauthorized"),
        (ValueError("secret"), "internal"),
        (TimeoutError("secret"), "internal"),
    ],
)
def test_each_exception_has_its_code(error: Exception, code: str) -> None:
    with structlog.testing.capture_logs() as lines:
        body = error_body(error)
    assert body.code == code
    assert body.retryable is ERRORS[code].retryable
    assert "secret" not in f"{body} {lines}"
    assert bool(lines) is (code == "internal"), "only what is unforeseen is logged"


def test_an_error_answers_its_command_or_stands_alone() -> None:
    body = refusal("rate_limited", "slow down", retry_after_ms=5).body
    reply = msgspec.json.decode(error_frame(body, "x"), type=Reply)
    assert (reply.re, reply.ok, reply.error) == ("x", False, body)
    alone = msgspec.json.decode(error_frame(body, None), type=ErrorFrame)
    assert (alone.code, alone.retry_after_ms) == ("rate_limited", 5)
    assert b"conversation" not in error_frame(body, None)
