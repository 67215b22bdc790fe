"""Standard streams that are closed, full, or without all of Unicode end nothing badly."""

import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from client_demo.standard_streams import standard_streams

ROOT = Path(__file__).parents[2]
NOBODY = "ws://127.0.0.1:1/v1/chat"


def shell(arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `python -m client_demo` with redirections of a shell."""
    return subprocess.run(  # noqa: S603 - our own program
        ["/bin/sh", "-c", f'exec "$PYTHON" -m client_demo {arguments}'],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=30,
        env={
            "PATH": os.environ["PATH"],
            "PYTHON": sys.executable,
            "XDG_STATE_HOME": str(folder),
        },
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", ["load --list", "--help"])
def test_an_output_that_takes_no_more_is_said_in_a_line(
    tmp_path: Path, arguments: str
) -> None:
    ran = shell(f"{arguments} > /dev/full", tmp_path)
    expected = "can't write the output: No space left on device\n"
    assert (ran.stderr, ran.returncode) == (expected, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("ask - <&-", 2, "there is nothing to ask"),
        (f"chat --url {NOBODY} <&- >&-", 4, ""),
        (f"ask hi --url {NOBODY} 2>&-", 4, ""),
        ("nothing", 2, "No such command"),
    ],
)
def test_a_stream_that_is_closed_is_as_good_as_nothing(
    tmp_path: Path, arguments: str, code: int, says: str
) -> None:
    ran = shell(arguments, tmp_path)
    assert ran.returncode == code, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_terminal_without_all_of_unicode_gets_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii"))
    with standard_streams():
        sys.stdout.write("é")
    assert written.getvalue() == rb"\xe9"


def test_a_file_that_can_not_be_used_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), standard_streams():
        (tmp_path / "none").read_text()
    assert (
        capsys.readouterr().err == f"{tmp_path / 'none'}: No such file or directory\n"
    )
