"""The first start says what takes so long, and later ones say nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
case "$*" in
"-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*pip*) [ ! -e no-network ] || { echo "no network" >&2; exit 1; } ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without an environment, and a Python that installs nothing."""
    (tmp_path / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "install", tmp_path / "requirements")
    (tmp_path / "requirements" / "run.txt").write_text("one==1\ntwo==2\n")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def install(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [checkout / "requirements" / "install", "run"],
        env=os.environ | {"PYTHON": str(checkout / "python")},
        capture_output=True, text=True, timeout=10, check=False,
    )  # fmt: skip


def test_the_first_time_it_says_what_it_does_and_then_nothing(checkout: Path) -> None:
    first = install(checkout)
    doing, done = first.stderr.splitlines()
    place = checkout.resolve() / ".venv"
    assert doing == (
        f"Installing 2 packages (run) into {place}: for the first time, this may take"
        " a minute …"
    )
    assert done.startswith("Installed (run) in ")
    again = install(checkout)
    assert (first.returncode, first.stdout) == (0, "")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_after_a_change_it_says_so_once_more(checkout: Path) -> None:
    install(checkout)
    (checkout / "requirements" / "run.txt").write_text("one==1\n")
    doing, _ = install(checkout).stderr.splitlines()
    assert doing.startswith("Installing 1 packages (run)")
    assert "first time" not in doing


def test_where_it_fails_it_is_done_again(checkout: Path) -> None:
    (checkout / "no-network").touch()
    failed = install(checkout)
    assert failed.returncode != 0
    assert "no network" in failed.stderr
    assert "Installed" not in failed.stderr
    (checkout / "no-network").unlink()
    assert "Installed" in install(checkout).stderr
