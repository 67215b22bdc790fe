"""Tells what kind of fault an upstream reports, in the words of many vendors.

Pure: error payloads, HTTP statuses and headers in, a `Failure` out. Whether a fault
is final follows one rule: 4xx other than 408, 409 and 429 are, and so is a spent
quota; whatever the upstream says of a request that is too long or was filtered out
goes before that.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from msgspec import Struct

from wsserver.engine.model import Failure
from wsserver.providers.exact_json import is_array, is_object, write_json
from wsserver.providers.surrogates import clean

# Enough for the longest explanation seen; a stack trace is cut.
MAX_MESSAGE_CHARS: Final = 2000

_MAX_CODE_CHARS: Final = 128

_TOO_LONG: Final = re.compile(
    r"""
    context[ _-]?(?:length|size|window|limit)
    | max(?:imum)?\ (?:context|prompt\ length|number\ of\ tokens\ allowed)
    | (?:prompt|input|conversation|messages?)\ (?:is|are)\ too\ long
    | (?:prompt|input)\ (?:length|tokens?|token\ count).{0,40}\ exceeds?
    | reduce\ the\ length\ of\ the\ (?:messages|prompt|input)
    | \binputs?`?\ (?:tokens\ \+|must\ have\ (?:less|fewer)\ than)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)
_TOO_LONG_WORDS: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
)
_FILTERED_WORDS: Final = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "responsibleaipolicyviolation",
    }
)
_QUOTA_WORDS: Final = frozenset({"insufficient_quota"})

_MESSAGE_MEMBERS: Final = ("message", "error_message", "detail", "msg", "error")
_CODE_MEMBERS: Final = ("code", "error_code", "status", "status_code")

# (code on the wire, whether the same request may succeed later)
_BY_STATUS: Final = {
    401: ("upstream_auth", False),
    402: ("upstream_rate_limited", False),
    403: ("upstream_auth", False),
    408: ("upstream_timeout", True),
    409: ("upstream_error", True),
    413: ("context_length", False),
    429: ("upstream_rate_limited", True),
    502: ("upstream_unavailable", True),
    503: ("upstream_unavailable", True),
    504: ("upstream_timeout", True),
    520: ("upstream_unavailable", True),
    521: ("upstream_unavailable", True),
    522: ("upstream_timeout", True),
    523: ("upstream_unavailable", True),
    524: ("upstream_timeout", True),
    529: ("upstream_unavailable", True),
}
# Read in this order, each word somewhere in the code or type.
_BY_WORD: Final = (
    (("rate_limit", "ratelimit", "too_many_req", "exhausted", "throttl"), 429),
    (("overload", "unavailable", "capacity", "loading"), 503),
    (("timeout", "timed_out", "deadline"), 504),
    (("authentication", "permission", "api_key", "unauthorized", "forbidden"), 401),
    (("invalid_request", "badrequest", "bad_request", "not_found", "notfound"), 400),
)


class _Report(Struct, frozen=True, kw_only=True):
    """What an error payload says; "" and None where it does not."""

    message: str
    code: str
    kind: str
    status: int | None


_LONGEST_WAIT_SECONDS = 86_400.0


def failure_from_status(
    status: int, payload: object, retry_after_seconds: float | None = None
) -> Failure:
    """Returns what an HTTP answer that is no 2xx means.

    Args:
        status: The HTTP status.
        payload: The body as parsed JSON, as text where it is none, or None.
        retry_after_seconds: As `read_retry_after` says.
    """
    return _failure(
        status, _read(payload), f"HTTP status {status}", retry_after_seconds
    )


def failure_from_payload(payload: object, otherwise: str) -> Failure:
    """Returns what an error inside an answer means.

    Args:
        payload: The event or body: an object with or without an `error` member,
            or text.
        otherwise: The message where the payload has none.
    """
    report = _read(payload)
    return _failure(report.status, report, otherwise, None)


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Returns how long to wait at least, in seconds, or None where nothing is said.

    Args:
        headers: Response headers, looked up in lower case.
        now: Used where the answer has no `date` of its own.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, _LONGEST_WAIT_SECONDS)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return min(seconds, _LONGEST_WAIT_SECONDS)
    if value is None:
        return None
    until = _date(value)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or now
    wait = max((until - since).total_seconds(), 0.0)
    return min(wait, _LONGEST_WAIT_SECONDS)


def _failure(
    status: int | None,
    report: _Report,
    otherwise: str,
    retry_after_seconds: float | None,
) -> Failure:
    words = {report.code.lower(), report.kind.lower()}
    if status is None:
        status = _status_of(words)
    code, retryable = _BY_STATUS.get(status or 500, ("upstream_error", True))
    if status is not None and status not in _BY_STATUS and status < 500:
        retryable = False
    if words & _QUOTA_WORDS:
        code, retryable = "upstream_rate_limited", False
    elif words & _FILTERED_WORDS:
        code, retryable = "content_filter", False
    elif words & _TOO_LONG_WORDS or (
        code in {"upstream_error", "upstream_unavailable"}
        and _TOO_LONG.search(report.message)
    ):
        code, retryable = "context_length", False
    return Failure(
        code=code,
        message=report.message or otherwise,
        retryable=retryable,
        retry_after_seconds=retry_after_seconds if retryable else None,
        upstream_code=report.code or report.kind or None,
    )


def _status_of(words: set[str]) -> int | None:
    for parts, status in _BY_WORD:
        if any(part in word for part in parts for word in words):
            return status
    return None


def _read(payload: object) -> _Report:
    """Finds message, code and kind: in `error`, beside it, or in vendors' own."""
    if is_array(payload) and payload:
        payload = payload[0]
    if not is_object(payload):
        text = _without_markup(payload) if isinstance(payload, str) else ""
        return _Report(message=_bounded(text), code="", kind="", status=None)
    outer: Mapping[str, Any] = payload
    inner: Mapping[str, Any] = outer
    error = outer.get("error") or outer.get("errors")
    if is_array(error) and error:
        error = error[0]
    if is_object(error):
        inner = error
    elif isinstance(error, str) and error:
        inner = {"message": error, **outer}
    beside = {} if inner is outer else {**outer, "error": None}
    message = next(
        (
            text
            for name in _MESSAGE_MEMBERS
            for source in (inner, beside)
            if (text := _text(source.get(name)))
        ),
        "",
    )
    codes = [
        value
        for source in (inner, beside)
        for name in _CODE_MEMBERS
        if isinstance(value := source.get(name), str | int) and value != ""
    ]
    numbers = [number for value in codes if (number := _http_status(value))]
    named = [value for value in codes if isinstance(value, str) and not _digits(value)]
    kinds = [inner.get("type"), inner.get("error_type"), outer.get("error_type")]
    kind = next((value for value in kinds if isinstance(value, str) and value), "")
    code = named[0] if named else ""
    if codes and not code and not kind:
        code = str(codes[0])
    return _Report(
        message=_bounded(message),
        code=clean(code)[:_MAX_CODE_CHARS],
        kind=clean(kind)[:_MAX_CODE_CHARS],
        status=numbers[0] if numbers else None,
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if not value or not (is_object(value) or is_array(value)):
        return ""
    if is_object(value) and "role" in value:
        return ""  # What a model said in another API's format is no reason.
    # FastAPI puts a list of what is wrong here, some vendors an object.
    try:
        return write_json(value)
    except ValueError:
        return ""


def _without_markup(text: str) -> str:
    """Leaves of an HTML page, such as a proxy's, its title."""
    if not text.lstrip().startswith("<"):
        return text
    title = _TITLE.search(text)
    return title[1] if title else ""


def _http_status(value: object) -> int | None:
    if isinstance(value, str) and _digits(value):
        value = int(value)
    return value if type(value) is int and 400 <= value <= 599 else None


def _digits(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 4


def _bounded(message: str) -> str:
    message = clean(message).strip()
    return message[:MAX_MESSAGE_CHARS]


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
