"""A log that nobody reads holds nothing up."""

import io
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic

import orjson
import pytest
import structlog

from wsserver.telemetry import log_stream
from wsserver.telemetry.log_stream import LogStream
from wsserver.telemetry.logging import configure

MOST_IN_A_PIPE = 1_100_000  # what a system gives one at the most unless it is told to


@contextmanager
def logged_to_a_pipe() -> Iterator[int]:
    """Gives the end that is to be read; what waits for it goes on when it is closed."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", buffering=1) as stream:
        configure("json", "info", stream)
        try:
            yield reader
        finally:
            os.close(reader)
            configure("json", "info")


def say(times: int, text: str) -> float:
    """Logs so many lines; returns how many seconds that took."""

    def run() -> None:
        for number in range(times):
            structlog.get_logger().info("line", number=number, text=text)

    began = monotonic()
    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "a line waits for whoever reads the log"
    return monotonic() - began


def read(reader: int) -> list[bytes]:
    """Returns the lines that are there."""
    os.set_blocking(reader, False)
    data = b""
    while True:
        try:
            data += os.read(reader, 65_536)
        except BlockingIOError:
            return data.splitlines()


@pytest.mark.parametrize("text", ["x" * 300, "é" * 20_000], ids=["short", "long"])
def test_a_log_that_nobody_reads_holds_nothing_up(text: str) -> None:
    times = MOST_IN_A_PIPE // len(text)
    with logged_to_a_pipe() as reader:
        assert say(times, text) < 5
        *whole, last = [line for line in read(reader) if line]
        said = [orjson.loads(line)["number"] for line in whole]
        assert said == list(range(len(said))), "what came first is there"
        assert b"lines_lost" not in last
        read_so_far = len(whole)
        if last.endswith(b"}"):
            read_so_far += 1

        structlog.get_logger().info("again")
        structlog.get_logger().info("and again")
        again, and_again = [orjson.loads(line) for line in read(reader) if line]
    assert (again["event"], again["lines_lost"]) == ("again", times - read_so_far)
    assert "lines_lost" not in and_again


def test_a_reader_that_is_behind_for_a_moment_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_stream, "PATIENCE_MS", 10_000)
    data = bytearray()
    with logged_to_a_pipe() as reader:

        def follow() -> None:
            while data.count(b"\n") < 500 and (more := os.read(reader, 4_096)):
                data.extend(more)

        thread = Thread(target=follow, daemon=True)
        thread.start()
        say(500, "x" * 300)
        thread.join(10)
    said = [orjson.loads(line)["number"] for line in data.splitlines()]
    assert said == list(range(500))


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """Lets no file grow beyond it, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", range(6))
@pytest.mark.parametrize("lost", [1, 30])
def test_the_first_line_after_a_full_disk_is_a_line(
    room: int, lost: int, tmp_path: Path
) -> None:
    file = tmp_path / "log"
    with file.open("a") as stream:
        lines = LogStream(stream)

        def say(text: str) -> bool:
            lines.write(f"{text}\n")
            return lines.flush()

        assert say("first")
        with full_at(len("first\n") + room):
            whole = [say("12345") for _ in range(lost)]
        assert lines.tell_lost(None, "", {}).get("lines_lost") == whole.count(False)
        assert say("again")
        assert lines.tell_lost(None, "", {}) == {}
        assert say("and again")
    first, *torn, again, and_again = file.read_text().splitlines()
    assert (first, again, and_again) == ("first", "again", "and again")
    assert torn == ["12345"[:room]] * (room > 0)


def test_a_stream_without_a_file_and_one_that_is_closed() -> None:
    stream = io.StringIO()
    lines = LogStream(stream)
    lines.write("é\n")
    assert lines.flush()
    assert stream.getvalue() == "é\n"
    stream.close()
    lines.write("lost\n")
    assert not lines.flush()


def test_what_a_stream_has_no_letters_for_is_written_all_the_same(
    tmp_path: Path,
) -> None:
    file = tmp_path / "log"
    with file.open("w", encoding="ascii") as stream:
        lines = LogStream(stream)
        lines.write("é\n")
        assert lines.flush()
    assert file.read_text() == "\\xe9\n"
