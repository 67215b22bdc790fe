"""Signals while a program is still being imported."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAST_LINE = "wsserver: stopped while starting\n"

# It is busy, and does not sleep: between the last step of Python and a call that waits
# a signal is seen by neither, and the sleep goes on to its end.
SLOW = """\
import time
ends_at = time.monotonic() + 30
print("imports", flush=True)
while time.monotonic() < ends_at:
    pass
"""

# Gives itself a signal as soon as the first module is imported by a program.
SIGNAL_AT_FIRST_IMPORT = """\
import os, sys
numbers = [{number}]
def hook(event, arguments):
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if event == "import" and spec is not None and numbers:
        os.kill(os.getpid(), numbers.pop())
sys.addaudithook(hook)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A folder with a library whose import takes its time."""
    (tmp_path / "typer.py").write_text(SLOW)
    return tmp_path


def begun(folder: Path, module: str, command: str, **options: Any) -> Any:
    """Begins a program that finds what is in the folder first."""
    # Not what measures coverage: it imports by itself.
    env = {name: os.environ[name] for name in os.environ if "COV" not in name}
    return subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", module, command],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options,
        cwd=folder, env=env | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
    )  # fmt: skip


def told(
    folder: Path, module: str, command: str, *numbers: Signals, **options: Any
) -> tuple[int, str | None]:
    """Sends a program signals while it imports; returns its code and its errors."""
    with begun(folder, module, command, **options) as process:
        assert process.stdout.readline() == "imports\n"
        for number in numbers:
            process.send_signal(number)
        _, said = process.communicate(timeout=10)
    return process.returncode, said


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_server_stops_as_one_that_serves(slow: Path, number: Signals) -> None:
    assert told(slow, "wsserver", "serve", number) == (0, LAST_LINE)


def test_a_server_stops_where_nobody_reads_its_last_line(slow: Path) -> None:
    unread, full = os.pipe()
    try:
        os.write(full, bytes(fcntl.fcntl(full, fcntl.F_GETPIPE_SZ)))
        assert told(slow, "wsserver", "serve", SIGTERM, stderr=full) == (0, None)
    finally:
        os.close(unread)
        os.close(full)


def test_a_reload_that_comes_too_early_ends_no_server(slow: Path) -> None:
    assert told(slow, "wsserver", "serve", SIGHUP, SIGTERM) == (0, LAST_LINE)


@pytest.mark.parametrize(
    ("module", "command"),
    [("wsserver", "doctor"), ("client_demo", "ask"), ("client_demo", "chat")],
)
def test_any_other_program_ends_without_a_word(
    slow: Path, module: str, command: str
) -> None:
    assert told(slow, module, command, SIGINT) == (130, "")
    assert told(slow, module, command, SIGTERM) == (-SIGTERM, "")


@pytest.mark.parametrize(
    ("module", "command", "number", "end"),
    [
        ("wsserver", "serve", SIGTERM, (0, LAST_LINE)),
        ("wsserver", "serve", SIGINT, (0, LAST_LINE)),
        ("wsserver", "doctor", SIGINT, (130, "")),
        ("client_demo", "ask", SIGINT, (130, "")),
    ],
)
def test_nothing_is_imported_before_signals_are_minded(
    tmp_path: Path, module: str, command: str, number: Signals, end: tuple[int, str]
) -> None:
    hook = SIGNAL_AT_FIRST_IMPORT.format(number=int(number))
    (tmp_path / "sitecustomize.py").write_text(hook)
    with begun(tmp_path, module, command) as process:
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == end
