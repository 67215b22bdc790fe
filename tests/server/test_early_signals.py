"""Signals while a program is still being imported."""

import os
import subprocess
import sys
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A folder with a library whose import takes its time."""
    (tmp_path / "typer.py").write_text(
        "import time\nprint('imports', flush=True)\ntime.sleep(30)\n"
    )
    return tmp_path


def told(folder: Path, module: str, command: str, number: Signals) -> tuple[int, str]:
    """Sends a program a signal while it imports; returns its code and its errors."""
    with subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", module, command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "imports\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=10)
    return process.returncode, said


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_server_stops_as_one_that_serves(slow: Path, number: Signals) -> None:
    assert told(slow, "wsserver", "serve", number) == (0, "")


def test_a_reload_that_comes_too_early_ends_no_server(slow: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "wsserver", "serve"],
        stdout=subprocess.PIPE, text=True,
        cwd=slow, env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "imports\n"
        process.send_signal(SIGHUP)
        process.send_signal(SIGTERM)
        process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("module", "command"),
    [("wsserver", "doctor"), ("client_demo", "ask"), ("client_demo", "chat")],
)
def test_any_other_program_ends_without_a_word(
    slow: Path, module: str, command: str
) -> None:
    assert told(slow, module, command, SIGINT) == (130, "")
    assert told(slow, module, command, SIGTERM) == (-SIGTERM, "")
