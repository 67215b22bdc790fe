"""Connections run under trio's clock too: minutes pass at once."""

from typing import Any

import pytest
import trio.testing


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {}), id="asyncio"),
        pytest.param(("trio", {}), id="trio"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Runs each test under both; trio's time jumps when all tasks wait."""
    name, options = request.param
    if name == "trio":
        clock = trio.testing.MockClock(autojump_threshold=0)
        return name, {**options, "clock": clock}
    return name, options
