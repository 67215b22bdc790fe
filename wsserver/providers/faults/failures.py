"""Tells what kind of fault an upstream reports, in the words of many vendors.

Pure: error payloads, HTTP statuses and headers in, a `Failure` out. Whether a fault
is final follows one rule: 4xx other than 408, 409 and 429 are, and so is a spent
quota; whatever the upstream says of a request that is too long or was filtered out
goes before that. Where in a payload a vendor says what is for `reports`.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import unescape
from math import isfinite
from typing import Final, Literal

from msgspec.structs import replace

from wsserver.engine.ending import LONGEST_WAIT_SECONDS
from wsserver.engine.model import Failure, UpstreamError
from wsserver.engine.secrets import hide, telling_values, url_secrets
from wsserver.providers.exact_json import is_object
from wsserver.providers.faults.reports import Report, read_report
from wsserver.providers.surrogates import clean

# Enough for the longest explanation seen; a stack trace is cut.
MAX_MESSAGE_CHARS: Final = 2000

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
_MARKUP: Final = re.compile(r"\s*<|[^<]{0,200}<(?:html|head|body)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<(?:title|message)\b[^<>]*>([^<]*)<", re.IGNORECASE)
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

# Where Portkey's gateway puts what is no JSON: a page, or why there is no connection.
_TEXT_MEMBER: Final = "html-message"
# What LiteLLM says, with 400, of a key that it does not know and has no database for.
_AUTH_WORDS: Final = frozenset({"no_db_connection"})

Flaw = Literal["was cut off", "can't be read"]
"""What can be wrong with what an upstream explains."""

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


class StatusError(UpstreamError):
    """A model call that was answered with a status that is no 2xx.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, failure: Failure, status: int) -> None:
        super().__init__(failure)
        self.status = status


def failure_from_status(
    status: int,
    payload: object,
    retry_after_seconds: float | None = None,
    *,
    flaw: Flaw | None = None,
) -> Failure:
    """Returns what an HTTP answer that is no 2xx means.

    Args:
        status: The HTTP status.
        payload: The body as parsed JSON, as text where it is none, or None.
        retry_after_seconds: As `read_retry_after` says.
        flaw: What is wrong with the body; the payload is not all that it was to say.
    """
    report = _read(payload, plain=flaw is not None)
    otherwise = f"HTTP status {status}"
    if flaw is not None:
        report = replace(report, message=_flawed(report, otherwise, flaw))
    return _failure(status, report, otherwise, retry_after_seconds)


def failure_from_payload(payload: object, otherwise: str) -> Failure:
    """Returns what an error inside an answer means.

    Args:
        payload: The event or body: an object with or without an `error` member,
            or text.
        otherwise: The message where the payload has none.
    """
    report = _read(payload)
    return _failure(report.status, report, otherwise, None)


def keys(api_key: str | None, headers: Mapping[str, str], base_url: str) -> str:
    """Returns all that a request is authorized with, for `without_key`."""
    known = [*telling_values(headers), *url_secrets(base_url)]
    return "\n".join([api_key or "", *known])


def without_key(failure: Failure, key: str | None) -> Failure:
    """Takes out what the request was authorized with, should an upstream quote it.

    Args:
        failure: What an upstream reports.
        key: Several stand one a line, which no header can hold; None for none.
    """
    if not key:
        return failure
    secrets = key.splitlines()
    said = failure.upstream_code
    return replace(
        failure,
        message=hide(failure.message, secrets),
        upstream_code=said and hide(said, secrets),
    )


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Returns how long to wait at least, in seconds, or None where nothing is said.

    Args:
        headers: Response headers, looked up in lower case.
        now: Used where the answer has no `date` of its own.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_WAIT_SECONDS)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return min(seconds, LONGEST_WAIT_SECONDS)
    if value is None:
        return None
    until = _date(value)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or now
    wait = max((until - since).total_seconds(), 0.0)
    return min(wait, LONGEST_WAIT_SECONDS)


def _failure(
    status: int | None,
    report: Report,
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
    elif words & _AUTH_WORDS:
        code, retryable = "upstream_auth", False
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


def _read(payload: object, *, plain: bool = False) -> Report:
    if is_object(payload) and isinstance(text := payload.get(_TEXT_MEMBER), str):
        payload = text
    if isinstance(payload, str):
        payload = _without_markup(payload)
    report = read_report(payload, plain=plain)
    return replace(report, message=_bounded(report.message))


def _flawed(report: Report, status: str, flaw: Flaw) -> str:
    """Says what is known; what was cut, perhaps in mid-word, stands last."""
    if report.message and report.message[0] not in "{[":
        return f"{status}; its explanation {flaw}, after: {report.message}"
    code = report.code or report.kind
    return f"{status}{code and f' ({code})'}; its explanation {flaw}."


def _without_markup(text: str) -> str:
    """Leaves of a page, such as a proxy's, its title; of XML its message."""
    if not _MARKUP.match(text):
        return text
    title = _TITLE.search(text)
    return " ".join(unescape(title[1]).split()) if title else ""


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
