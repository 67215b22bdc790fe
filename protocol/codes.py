"""The catalogue of error and close codes, with what a client should do.

The docs and the schemas are generated from it.
"""

from enum import IntEnum
from typing import Literal

from msgspec import Struct


class ErrorCode(Struct, frozen=True, kw_only=True):
    """One error code.

    Attributes:
        code: As on the wire.
        scope: `command` (in a `reply` or an `error` without conversation),
            `turn` (in an `error` event), or `both`.
        retryable: Whether sending the same again may succeed; single errors may
            say otherwise.
        meaning: What happened.
        remedy: What the client should do.
    """

    code: str
    scope: Literal["command", "turn", "both"]
    retryable: bool
    meaning: str
    remedy: str


def _catalogue(
    *rows: tuple[str, Literal["command", "turn", "both"], bool, str, str],
) -> dict[str, ErrorCode]:
    return {
        code: ErrorCode(
            code=code, scope=scope, retryable=retryable, meaning=meaning, remedy=remedy
        )
        for code, scope, retryable, meaning, remedy in rows
    }


ERRORS = _catalogue(
    ("bad_json", "command", False, "The frame is not one JSON object in UTF-8.", "Send each frame as one JSON object."),
    ("bad_frame", "command", False, "A member is missing, of a wrong type, out of range, nested too deep or not for clients to set.", "Correct the member that `param` names."),
    ("unknown_type", "command", False, "The frame's `type` is not a command.", "Use a command of the protocol's table."),
    ("hello_required", "command", False, "A command came before `hello`.", "Send `hello` as the first frame."),
    ("unsupported_protocol", "command", False, "The server does not speak that version.", "Say hello with a version that the message names."),
    ("unauthorized", "command", False, "The credentials are missing, wrong or expired.", "Get new credentials."),
    ("forbidden", "command", False, "The principal may not do this.", "Do not try again with these credentials."),
    ("conversation_not_found", "command", False, "No such conversation, or not yours.", "Drop the cursor; open without one to begin anew."),
    ("bad_cursor", "command", False, "`after` is not a whole number from 0 to 2^53 - 1.", "Open with a number that an event carried, or without."),
    ("bad_model", "command", False, "No configured upstream knows the model.", "Choose one of the models in `welcome`."),
    ("busy", "command", True, "A turn runs and the policy was `reject`.", "Wait for its `done`, or choose another policy."),
    ("queue_full", "command", True, "Too many messages wait in this conversation.", "Wait for a `done`, then send again under the same id."),
    ("too_large", "both", False, "Something is larger than the limit that the message names.", "Send less."),
    ("too_many_conversations", "command", False, "The connection, or the principal, has its limit of conversations open, or the principal its limit of those that are stored.", "Close one first, or delete one, as the message says."),
    ("too_many_turns", "command", True, "The principal has its limit of turns running.", "Wait for a `done`, then send again under the same id."),
    ("rate_limited", "command", True, "Too many frames in too short a time, or too many connections.", "Wait `retry_after_ms`, then send again under the same id."),
    ("idempotency_conflict", "command", False, "The id was used for another content.", "Use a new id for each command."),
    ("draining", "command", True, "The server is about to stop and starts no turns.", "Reconnect, then send again under the same id."),
    ("store_unavailable", "both", True, "The log can't be written at the moment.", "Send again later under the same id."),
    ("internal", "both", True, "The server failed in a way it did not foresee.", "Send again later under the same id; tell the operator the request id."),
    ("upstream_auth", "turn", False, "The upstream refused the server's credentials.", "Tell the operator."),
    ("upstream_rate_limited", "turn", True, "The upstream takes no more requests for now.", "Send again after `retry_after_ms`."),
    ("upstream_unavailable", "turn", True, "The upstream could not be reached or is overloaded.", "Send again later."),
    ("upstream_timeout", "turn", True, "The upstream did not begin to answer in time.", "Send again later."),
    ("upstream_error", "turn", False, "The upstream refused the request or failed while answering.", "Read the message; the same request is likely to fail again."),
    ("context_length", "turn", False, "The conversation is too long for the model.", "Fork at an earlier turn, or choose another model."),
    ("content_filter", "turn", False, "The upstream's content filter refused the request.", "Say it in other words."),
    ("schema_mismatch", "turn", True, "The answer does not fit `response_schema`.", "Send again, or loosen the schema."),
    ("too_many_tool_rounds", "turn", False, "The model asked for more rounds of tools than are allowed.", "Ask for less at once."),
    ("response_too_large", "turn", False, "The answer is larger than a turn may be.", "Ask for less at once."),
)  # fmt: skip


class CloseCode(IntEnum):
    """WebSocket close codes that a client may meet; some are reserved."""

    NORMAL = 1000
    GOING_AWAY = 1001
    BINARY = 1003
    BAD_UTF8 = 1007
    FRAME_TOO_BIG = 1009
    INTERNAL = 1011
    RESTART = 1012
    OVERLOAD = 1013
    BAD_FRAMES = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    NO_COMMON_VERSION = 4406
    NO_HELLO = 4408
    DEAD = 4508
    SLOW = 4513
    RATE = 4529
    DRAINED = 4601


NO_CLOSE_FRAME = 1006
"""What stands for the code where a connection ended without one; never on the wire
(RFC 6455, section 7.1.5)."""


class CloseMeaning(Struct, frozen=True, kw_only=True):
    """What one close code says.

    Attributes:
        code: The number on the wire.
        meaning: What happened.
        remedy: What the client should do, beyond what `advice` says.
    """

    code: CloseCode
    meaning: str
    remedy: str


CLOSES: dict[CloseCode, CloseMeaning] = {
    code: CloseMeaning(code=code, meaning=meaning, remedy=remedy)
    for code, meaning, remedy in (
        (CloseCode.NORMAL, "The client closed, and the server agreed.", "Nothing."),
        (CloseCode.GOING_AWAY, "The server stops, or the page was left. Reserved: this server says 1012.", "Reconnect and open with the cursors."),
        (CloseCode.BINARY, "A binary frame came.", "Send text frames only."),
        (CloseCode.BAD_UTF8, "A text frame was not UTF-8.", "Send UTF-8."),
        (CloseCode.FRAME_TOO_BIG, "A frame was above the hard limit of the connection.", "Do not send that frame again; keep to `limits.frame_bytes`."),
        (CloseCode.INTERNAL, "The server failed in a way it did not foresee.", "Reconnect and open with the cursors."),
        (CloseCode.RESTART, "The server restarts.", "Reconnect and open with the cursors."),
        (CloseCode.OVERLOAD, "The server takes no more connections for now. Reserved: this server answers the handshake with HTTP 503.", "Reconnect later."),
        (CloseCode.BAD_FRAMES, "More than 100 bad frames came within 10 s.", "Correct the client."),
        (CloseCode.UNAUTHORIZED, "The credentials are missing, wrong or expired.", "Get new credentials."),
        (CloseCode.FORBIDDEN, "These credentials, or this origin, may not connect.", "Ask the operator."),
        (CloseCode.NO_COMMON_VERSION, "Client and server have no protocol version in common.", "Update the client."),
        (CloseCode.NO_HELLO, "No `hello` came in time.", "Send `hello` as the first frame, at once."),
        (CloseCode.DEAD, "No byte came in and none drained for too long.", "Reconnect and open with the cursors."),
        (CloseCode.SLOW, "Something was due and nothing drained for too long.", "Read faster, then open with the cursors."),
        (CloseCode.RATE, "Too many frames came, even after `rate_limited`, or the principal has too many connections.", "Send less often; close connections that are not needed."),
        (CloseCode.DRAINED, "The server has drained; another one is ready. Reserved: this server says 1012.", "Reconnect and open with the cursors."),
    )
}  # fmt: skip

Advice = Literal["stop", "back_off", "reconnect_now"]

FATAL = frozenset({1000, 1003, 1007})
"""Close codes after which reconnecting would fail alike, beside those in `ENDING`."""

ENDING = range(4400, 4500)
PROMPT = range(4600, 4700)
"""Close codes after which a client should reconnect at once."""

CLOSE_ERRORS: dict[int, str] = {
    CloseCode.UNAUTHORIZED: "unauthorized",
    CloseCode.FORBIDDEN: "forbidden",
    CloseCode.NO_COMMON_VERSION: "unsupported_protocol",
    CloseCode.NO_HELLO: "hello_required",
}
"""The error codes that close codes stand for."""


def advice(code: int) -> Advice:
    """Says what a client should do after a close with `code`.

    `stop`: reconnecting would fail alike. `back_off`: reconnect with full
    jitter. `reconnect_now`: the server asks for it. Codes that are not in the
    catalogue (1006 too: no close frame came) mean `back_off`.
    """
    if code in FATAL or code in ENDING:
        return "stop"
    if code in PROMPT:
        return "reconnect_now"
    return "back_off"
