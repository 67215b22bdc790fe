"""Killed at any line while all sorts of things happen: nothing is lost or comes back."""

import subprocess
import sys
from pathlib import Path

import pytest

LIVES = 50


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    ("seed", "space"), [(1, "kept"), (2, "kept"), (3, "not-kept"), (4, "not-kept")]
)
def test_what_was_stored_stays_and_what_was_dropped_does_not_come_back(
    tmp_path: Path, seed: int, space: str
) -> None:
    ran = subprocess.run(  # noqa: S603 - our own module
        [
            sys.executable,
            "-m",
            "tests.stores.churning",
            str(tmp_path),
            str(seed),
            str(LIVES),
            space,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 200, "steps of which none was cut off"
