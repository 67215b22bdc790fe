"""A server whose standard input, output or error is not there, or takes nothing."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from signal import SIGTERM
from urllib.request import urlopen

import orjson
import pytest

SERVE = [sys.executable, "-m", "wsserver", "serve", "--port=0", "--store=memory"]


@pytest.mark.parametrize("closed", ["<&- 2>&-", "<&- >&-"])
def test_it_serves_and_ends_as_ever(closed: str) -> None:
    with subprocess.Popen(  # noqa: S603 - our own code
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *SERVE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said = process.stdout if "2" in closed else process.stderr
            assert said is not None
            assert "listening" in said.readline()
            process.send_signal(SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


@contextmanager
def a_full_disk() -> Iterator[int]:
    file = os.open("/dev/full", os.O_WRONLY)
    yield file
    os.close(file)


@contextmanager
def a_pipe_that_is_closed() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextmanager
def a_pipe_that_is_full() -> Iterator[int]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(65_536))
    os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


TakesNothing = Callable[[], AbstractContextManager[int]]
TAKE_NOTHING = [a_full_disk, a_pipe_that_is_closed, a_pipe_that_is_full]


@pytest.mark.parametrize("takes_nothing", TAKE_NOTHING)
def test_it_serves_where_nobody_hears_that_it_listens(
    takes_nothing: TakesNothing,
) -> None:
    with (
        takes_nothing() as output,
        subprocess.Popen(  # noqa: S603 - our own code
            [*SERVE, "--log-format=json"], stdout=output, stderr=subprocess.PIPE
        ) as process,
    ):
        try:
            assert process.stderr is not None
            listening = orjson.loads(process.stderr.readline())
            warning = orjson.loads(process.stderr.readline())
            assert warning["event"] == "not_announced"
            assert warning["url"].endswith("/v1/chat")
            page = listening["page"]
            with urlopen(f"{page}healthz", timeout=5) as response:  # noqa: S310
                assert response.status == 200
            process.send_signal(SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("takes_nothing", TAKE_NOTHING)
def test_its_exit_code_says_what_nobody_hears(takes_nothing: TakesNothing) -> None:
    with takes_nothing() as errors:
        done = subprocess.run(  # noqa: S603 - our own code
            [*SERVE, "--port=none"], stderr=errors, timeout=10, check=False
        )
    assert done.returncode == 2
