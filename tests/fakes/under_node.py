"""Runs tests that are written in JavaScript, which need Node 20 or newer."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def run_under_node(path: Path) -> None:
    """Runs one file of tests; fails as it fails, and when there is none in it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    run = subprocess.run(  # noqa: S603
        [node, "--test", "--test-reporter=spec", str(path)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"ℹ pass [1-9]", run.stdout), "no test ran"  # noqa: RUF001
