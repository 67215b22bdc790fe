"""The first start says what takes so long, and later ones say nothing."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[1]
# It knows its version, makes environments, and installs nothing.
PYTHON = f"""#!/bin/sh
case "$*" in
"-c import sys"*) exec {sys.executable} "$@" ;;
"-c import pip") [ -e .venv/pip ] ;;
"-m venv --clear .venv")
    rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python
    [ ! -e no-ensurepip ] || {{ echo "no ensurepip" >&2; exit 1; }}
    touch .venv/pip ;;
"-m pip"*)
    [ ! -e slow ] || exec {sys.executable} -c "import time; print('pip', flush=True); time.sleep(60)"
    [ ! -e no-network ] || {{ echo "no network" >&2; exit 1; }} ;;
esac
"""
OLD_PYTHON = f"""#!/bin/sh
exec {sys.executable} -c 'import sys
code = sys.argv.pop(1)
sys.version_info, sys.version = (3, 10, 4), "3.10.4 (main)"
exec(code)' "$2" "$3"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without an environment, and a Python that installs nothing."""
    (tmp_path / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "install", tmp_path / "requirements")
    shutil.copy(ROOT / "start", tmp_path)
    (tmp_path / "requirements" / "run.txt").write_text("one==1\ntwo==2\n")
    (tmp_path / "pyproject.toml").touch()
    for name, program in (("python", PYTHON), ("old", OLD_PYTHON)):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def install(checkout: Path, python: str = "python") -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [checkout / "requirements" / "install", "run"],
        env=os.environ | {"PYTHON": str(checkout / python)},
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
    assert "does this machine reach it?" in failed.stderr
    assert "Installed" not in failed.stderr
    (checkout / "no-network").unlink()
    assert "Installed" in install(checkout).stderr


def starting(checkout: Path) -> subprocess.Popen[str]:
    """Starts the server in a checkout, in a group of processes of its own."""
    return subprocess.Popen(  # noqa: S603
        [checkout / "start"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHON": str(checkout / "python")}, start_new_session=True,
    )  # fmt: skip


def first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize(
    ("kill", "by", "code"),
    [
        (os.killpg, signal.SIGINT, 130),  # as a terminal does
        (os.kill, signal.SIGTERM, 143),  # as a service manager does
        (os.kill, signal.SIGHUP, 129),
    ],
)
def test_it_can_be_ended_on_the_way(
    checkout: Path, kill: Callable[[int, int], None], by: int, code: int
) -> None:
    (checkout / "slow").touch()
    with starting(checkout) as started:
        assert first_line(started.stdout) == "pip\n"
        kill(started.pid, by)
        # When its output ends no program is left that has it, pip neither.
        _, said = started.communicate(timeout=10)
    doing, stopped = said.splitlines()
    assert started.returncode == code
    assert doing.startswith("Installing 2 packages")
    assert stopped == "Stopped before all was installed; the next time it goes on."


def test_two_install_one_after_the_other(checkout: Path) -> None:
    (checkout / "slow").touch()
    with starting(checkout) as first:
        assert first_line(first.stdout) == "pip\n"
        with starting(checkout) as second:
            place = checkout.resolve() / ".venv"
            assert first_line(second.stderr) == (
                f"Waiting for another one that installs into {place} …\n"
            )
            (checkout / "slow").unlink()
            os.kill(first.pid, signal.SIGTERM)
            first.communicate(timeout=10)
            _, said = second.communicate(timeout=10)
    assert "Installed (run) in " in said


def test_what_is_started_is_in_its_place_and_has_no_lock(checkout: Path) -> None:
    server = checkout / "server"
    server.write_text('#!/bin/sh\necho $$ "$PWD" "$@"; ls /dev/fd\n')
    server.chmod(0o755)
    with subprocess.Popen(  # noqa: S603
        [checkout / "requirements" / "install", "run", server, "a b"],
        env=os.environ | {"PYTHON": str(checkout / "python")},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
    ) as started:  # fmt: skip
        said, _ = started.communicate(timeout=10)
    line, *files = said.splitlines()
    assert line == f"{started.pid} {ROOT} a b"
    assert "9" not in files


@pytest.mark.parametrize("program", ["start", "requirements/install", "test"])
def test_it_can_be_called_by_a_link(checkout: Path, program: str) -> None:
    shutil.copy(ROOT / "test", checkout)
    (checkout / "requirements" / "dev.txt").write_text("one==1\n")
    (checkout / "other").mkdir()
    (checkout / "other" / "link").symlink_to(f"../{program}")
    called = subprocess.run(  # noqa: S603
        [checkout / "other" / "link", "run"],
        env=os.environ | {"PYTHON": str(checkout / "python")},
        capture_output=True, text=True, timeout=10, check=False, cwd=checkout / "other",
    )  # fmt: skip
    place = checkout.resolve() / ".venv"
    assert f" into {place}: for the first time" in called.stderr
    assert "requirements/install: not found" not in called.stderr
    assert not (checkout / "other" / ".venv").exists()


def test_an_environment_without_pip_is_made_anew(checkout: Path) -> None:
    (checkout / "no-ensurepip").touch()  # as on Debian without python3-venv
    failed = install(checkout)
    assert failed.returncode != 0
    assert "no ensurepip" in failed.stderr
    assert (checkout / ".venv" / "bin" / "python").exists()
    (checkout / "no-ensurepip").unlink()
    assert "Installed" in install(checkout).stderr
    assert (checkout / ".venv" / "pip").exists()


def test_in_another_place_it_is_made_anew(checkout: Path) -> None:
    install(checkout)
    moved = checkout.rename(checkout.with_name("moved"))
    assert "for the first time" in install(moved).stderr
    assert install(moved).stderr == ""


def test_when_its_python_is_gone_it_is_made_anew(checkout: Path) -> None:
    install(checkout)
    (checkout / ".venv" / "bin" / "python").unlink()
    assert "for the first time" in install(checkout).stderr
    assert install(checkout).stderr == ""


def test_too_old_a_python_is_told_before_anything_is_made(checkout: Path) -> None:
    failed = install(checkout, "old")
    assert failed.returncode == 1
    assert failed.stderr == (
        f"Python 3.11 or newer is needed, and {checkout}/old is 3.10.4: name another"
        " one, as in `PYTHON=python3.12 ./start`\n"
    )
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_not_there_is_named(checkout: Path) -> None:
    failed = install(checkout, "none")
    assert failed.returncode == 1
    assert failed.stderr == (
        f"There is no {checkout}/none: install Python 3.11 or newer\n"
    )


@pytest.mark.parametrize(
    "place", ["README*.md", "docs/**/*.md", "wsserver/**/*.py", "client_demo/**/*.py"]
)
def test_no_remedy_takes_it_from_an_index_where_it_is_not(place: str) -> None:
    told = [
        str(path.relative_to(ROOT))
        for path in ROOT.glob(place)
        if re.search(r"install\W+wsserver\b", path.read_text())
    ]
    assert told == []
