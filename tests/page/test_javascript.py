"""Runs the JavaScript client's own tests, which need Node 20 or newer."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "client_demo" / "web"


@pytest.mark.node
@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda p: p.name)
def test_under_node(path: Path) -> None:
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


def test_the_vendored_file_is_the_one_that_was_looked_at() -> None:
    content = (WEB / "vendor" / "streaming-markdown.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == (
        "c0f8378b15e5e26a309a15fd19e04ccbed4b1d6e6d6dfa8b88ae8568140dc609"
    )
