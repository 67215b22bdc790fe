"""Servers as processes, and the process as it was after each test."""

import http.client
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import structlog

WAIT_SECONDS = 15


@pytest.fixture(autouse=True)
def logging_is_left_as_it_was() -> Iterator[None]:
    """Commands that are run in this process configure it."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


class Process:
    """`wsserver serve` as a child process.

    Attributes:
        process: The child.
        port: Where it listens.
    """

    def __init__(self, log_file: Path, *arguments: str, **variables: str) -> None:
        self._log_file = log_file
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("WSSERVER_", "OPENAI_"))
        }
        with log_file.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "wsserver", "serve", "--port=0", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environ | {"WSSERVER_STORE": "memory"} | variables,
            )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on wss?://.+:(\d+)/v1/chat\n", self.line)
        assert found, self.line + self.log
        self.port = int(found[1])

    @property
    def log(self) -> str:
        """What it wrote to standard error so far."""
        return self._log_file.read_text()

    @property
    def resident_bytes(self) -> int:
        """How much memory it has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
        return 1024 * int(line)

    @property
    def cpu_seconds(self) -> float:
        """How much processor time it has used."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Asks for a path, and returns status and body."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=WAIT_SECONDS
        )
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def tell(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def wait(self) -> tuple[int, float]:
        """Returns the exit code, and how long it took, in seconds."""
        began = monotonic()
        return self.process.wait(WAIT_SECONDS), monotonic() - began

    def end(self) -> None:
        """Kills it if it still runs."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts servers; arguments are flags, keywords are variables."""
    started: list[Process] = []

    def call(*arguments: str, **variables: str) -> Process:
        log_file = tmp_path / f"log{len(started)}"
        process = Process(log_file, *arguments, **variables)
        started.append(process)
        return process

    yield call
    for process in started:
        process.end()
