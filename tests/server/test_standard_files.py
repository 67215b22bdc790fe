"""A server that was started without standard input, output or error."""

import subprocess
import sys
from signal import SIGTERM

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
