"""Log lines on standard error: configured once, by `wsserver.process`.

Lines carry ids (connection, conversation, turn, request), never what people or
models say, and never credentials. The rooms see to the first; `redact` here is
the net below them for the second, also for exceptions and for what libraries log.
"""

import json  # noqa: TID251 - writes what orjson does not
import logging
import re
import sys
from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO, cast

import orjson
import structlog

from wsserver.telemetry.log_stream import LogStream

Format = Literal["console", "json"]
Level = Literal["debug", "info", "warning", "error"]

REDACTED = "[redacted]"

LINES: Counter[str] = Counter()
"""How many lines this process has logged, by level."""

_SECRET_NAMES = frozenset(
    {"token", "api_key", "authorization", "password", "secret", "credentials"}
)
_SECRET_TEXT = re.compile(
    r"(?P<before>\bbearer[ .]|\b(?:access_)?token=|\b(?-i:eyJ)|\bsk-"
    r"|\bauthorization[\"']?[:=] ?[\"']?basic |\bapi[_-]?key[\"']?[:=] ?[\"']?)"
    r"[^\s\"',;&)]+",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^\s/\"'@]+@")


def configure(
    log_format: Format, level: Level = "info", stream: TextIO | None = None
) -> None:
    """Sends structlog's lines, and what libraries warn of, to `stream`.

    Args:
        log_format: `json` for machines, one object a line; `console` for people.
        level: The least level that is logged.
        stream: Standard error unless given.
    """
    target: TextIO = stream or sys.stderr
    renderers: dict[Format, structlog.typing.Processor] = {
        "json": structlog.processors.JSONRenderer(_dumps),
        # structlog's own choice of traceback shows local variables.
        "console": structlog.dev.ConsoleRenderer(
            colors=target.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
        ),
    }
    lines = LogStream(target)
    # The console renderer formats exceptions itself, after `redact` has run; so
    # they become text before it in either format.
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _count,
            lines.tell_lost,
            structlog.processors.format_exc_info,
            redact,
            renderers[log_format],
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", lines)),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)


def _count(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    del logger, method
    LINES[event["level"]] += 1
    return event


def redact(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """Hides credentials: values under telling names, and telling text anywhere."""
    del logger, method
    for name, value in event.items():
        event[name] = REDACTED if name in _SECRET_NAMES else _without_secrets(value)
    return event


def _without_secrets(value: object) -> object:
    if isinstance(value, str):
        value = _USERINFO.sub(f"{REDACTED}@", value)
        return _SECRET_TEXT.sub(rf"\g<before>{REDACTED}", value)
    if isinstance(value, list):
        return [_without_secrets(one) for one in cast("list[object]", value)]
    return value


class _Forward(logging.Handler):
    """Passes on what libraries say through the standard library's logging."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            max(record.levelno, logging.WARNING),
            record.getMessage(),
            logger=record.name,
            exc_info=record.exc_info,
        )


def _dumps(event: Mapping[str, Any], **options: Any) -> str:
    default = options.get("default", str)
    try:
        return orjson.dumps(event, default=default).decode()
    except TypeError:  # large integers, and paths that are no Unicode
        return json.dumps(event, default=default)
