"""Runs the JavaScript client's own tests, which need Node 20 or newer."""

import hashlib
from pathlib import Path

import pytest

from tests.fakes.under_node import run_under_node

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "client_demo" / "web"


@pytest.mark.node
@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda p: p.name)
def test_under_node(path: Path) -> None:
    run_under_node(path)


def test_the_vendored_file_is_the_one_that_was_looked_at() -> None:
    content = (WEB / "vendor" / "streaming-markdown.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == (
        "c0f8378b15e5e26a309a15fd19e04ccbed4b1d6e6d6dfa8b88ae8568140dc609"
    )
