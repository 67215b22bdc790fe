import errno
import io
import json  # noqa: TID251 - reads what orjson does not
import logging
import warnings

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from wsserver.telemetry.logging import REDACTED, Format, configure, redact
from wsserver.telemetry.metrics import Metrics

HUSH = "HUSH123"
LIBRARY = logging.getLogger("some.library")  # noqa: TID251 - libraries use these


def lines(log_format: Format = "json", level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    configure(log_format, level, stream)  # pyright: ignore[reportArgumentType]
    return stream


def only(stream: io.StringIO) -> dict[str, object]:
    (line,) = stream.getvalue().splitlines()
    return orjson.loads(line)


def test_a_line_is_one_json_object_with_time_and_level() -> None:
    stream = lines()
    structlog.get_logger().info("turn_done", turn=2, text="a\nb")
    line = only(stream)
    assert (line["event"], line["level"], line["turn"]) == ("turn_done", "info", 2)
    assert str(line["timestamp"]).endswith("Z")


def test_ids_come_from_the_context() -> None:
    stream = lines()
    with structlog.contextvars.bound_contextvars(connection="conn_1"):
        structlog.get_logger().info("hello")
    assert only(stream)["connection"] == "conn_1"


def test_what_is_below_the_level_is_not_there() -> None:
    stream = lines(level="warning")
    structlog.get_logger().info("quiet")
    assert stream.getvalue() == ""


def test_lines_are_counted_by_level_as_far_as_they_are_logged() -> None:
    def counted(level: str) -> float:
        sample = f'wsserver_log_lines_total{{level="{level}"}} '
        scraped = Metrics().render().decode().splitlines()
        return sum(
            float(line[len(sample) :]) for line in scraped if line.startswith(sample)
        )

    lines(level="warning")
    before = counted("warning"), counted("error"), counted("info")
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("odd")
    structlog.get_logger().exception("defective", exc_info=ValueError())
    assert counted("warning") == before[0] + 1
    assert counted("error") == before[1] + 1
    assert counted("info") == before[2]


def test_what_cannot_be_json_is_told_as_text() -> None:
    stream = lines()
    structlog.get_logger().info("odd", value={1})
    assert only(stream)["value"] == "{1}"


def test_names_that_are_no_unicode_are_told_all_the_same() -> None:
    stream = lines()
    structlog.get_logger().info("odd", path="a\udcff", size=2**70)
    line = json.loads(stream.getvalue())
    assert (line["path"], line["size"]) == ("a\udcff", 2**70)


class Full(io.StringIO):
    """A file on a disk with no room left, for a while."""

    room = False

    def write(self, text: str) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_a_line_that_cannot_be_written_stops_nothing() -> None:
    stream = Full()
    configure("json", "info", stream)
    structlog.get_logger().info("lost")
    LIBRARY.warning("lost, too")
    stream.room = True
    structlog.get_logger().info("there")
    assert only(stream)["event"] == "there"
    stream.close()
    structlog.get_logger().info("nowhere to write")


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_secret_gets_through_in_any_form(log_format: Format) -> None:
    stream = lines(log_format)
    log = structlog.get_logger()
    log.info("a", token=HUSH, authorization=f"Bearer {HUSH}", api_key=HUSH)
    log.info("b", header=f"authorization: bearer {HUSH}", offered=f"x, bearer.{HUSH}")
    log.info("c", url=f"/v1/chat?a=1&token={HUSH}&b=2", key=f"sk-{HUSH}")
    log.info("d", last_lines=["fine", f"Bearer {HUSH}"], url=f"http://a:{HUSH}@b/v1")
    log.info("e", about=f"api-key: {HUSH}", more=f"{{'Authorization': 'Basic {HUSH}'}}")

    def fail(local_variable: str) -> None:
        raise ValueError(f"bad header: Bearer {local_variable}")

    try:
        fail(HUSH)
    except ValueError:
        log.exception("d")
        LIBRARY.exception("failed for bearer.%s", HUSH)
    text = stream.getvalue()
    assert HUSH not in text
    assert text.count(REDACTED) >= 13
    assert "fine" in text
    assert "b=2" in text
    assert "ValueError" in text


@given(st.text(st.characters(categories=["L", "N"]), min_size=1), st.text())
def test_a_bearer_token_is_hidden_wherever_it_stands(token: str, before: str) -> None:
    event = redact(None, "info", {"about": f"{before} Bearer {token}, and more"})
    assert str(event["about"]).endswith(f" Bearer {REDACTED}, and more")


def test_ordinary_text_stays() -> None:
    text = "a risk-free desk: 3 tokens of 5, /healthz, conversation_created"
    assert redact(None, "info", {"about": text})["about"] == text


def test_what_libraries_warn_of_is_a_line_like_any_other() -> None:
    stream = lines()
    LIBRARY.info("chatter")
    LIBRARY.warning("hm: %d", 3)
    line = only(stream)
    assert (line["event"], line["logger"]) == ("hm: 3", "some.library")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "py.warnings" in stream.getvalue()


def test_a_json_web_token_is_hidden_wherever_it_stands() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"  # noqa: S105
    event = {"event": f"odd {token}", "about": f"({token}) of Eyjafjord"}
    assert redact(None, "info", event) == {
        "event": "odd eyJ[redacted]",
        "about": "(eyJ[redacted]) of Eyjafjord",
    }
