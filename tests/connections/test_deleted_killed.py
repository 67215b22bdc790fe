"""A server that is killed at any moment of a deletion and of what follows it."""

import subprocess
import sys

import pytest

APART = 6
"""A kill at each moment would take half a minute."""


@pytest.mark.no_cover
@pytest.mark.parametrize("first", [1, 4])
def test_what_was_told_of_deletions_outlives_a_kill(first: int) -> None:
    program = [sys.executable, "-m", "tests.connections.killed", str(first), str(APART)]
    done = subprocess.run(  # noqa: S603 - our own module
        program, capture_output=True, text=True, timeout=120, check=True
    )
    *wrong, ended = done.stdout.splitlines()
    assert not wrong
    steps, word = ended.split()
    assert word == "steps"
    assert int(steps) > 100
