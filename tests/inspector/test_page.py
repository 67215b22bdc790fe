"""What the inspector's page computes, under Node."""

from pathlib import Path

import pytest

from tests.fakes.under_node import run_under_node

HERE = Path(__file__).parent


@pytest.mark.node
@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda p: p.name)
def test_under_node(path: Path) -> None:
    run_under_node(path)
