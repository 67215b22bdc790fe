"""A part that is missing skips its tests here, and fails them in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IN_A_TEST = """
import pytest

@pytest.fixture
def part():
    pytest.skip("the part is missing")

def test_by_a_fixture(part): ...

def test_by_itself():
    pytest.importorskip("a_part_that_is_missing")
"""
IN_A_FILE = """
import pytest

pytest.importorskip("a_part_that_is_missing")

def test_all_of_it(): ...
"""


@pytest.mark.parametrize(
    ("ci", "told"), [("true", "1 failed, 2 errors"), ("", "3 skipped")]
)
def test_what_is_skipped_fails_in_ci(ci: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "test_in_a_test.py").write_text(IN_A_TEST)
    (tmp_path / "test_in_a_file.py").write_text(IN_A_FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plugins = [f"-p{name}" for name in ("tests.conftest", "no:cacheprovider")]
    quiet = ["-q", "--continue-on-collection-errors"]

    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pytest", *plugins, *quiet, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert told in done.stdout.splitlines()[-1], done.stdout
