"""The real server as a process, for tests and programs that are no coroutines.

It has the demo models and a store in memory. `server` is the one for coroutines.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SECONDS = 10.0


@contextmanager
def plain_server(*flags: str) -> Iterator[str]:
    """Serves while the context is open; gives the address, as `host:port`."""
    command = [sys.executable, "-m", "wsserver", "serve", "--port", "0"]
    options = ["--store", "memory", "--drain-seconds", "0", *flags]
    with subprocess.Popen(  # noqa: S603 - our own program
        command + options, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            assert line.startswith("listening on ws://"), line
            yield line.split("://")[1].split("/")[0]
        finally:
            server.terminate()
            code = server.wait(STOP_SECONDS)
    assert code == 0, code
