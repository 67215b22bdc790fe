"""Real sockets' code in virtual time: hours pass at once, nothing sleeps."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.client_demo.double import Double, double
from tests.fakes.clocks import jumping_loop


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": jumping_loop}


@pytest.fixture
async def server() -> AsyncGenerator[Double]:
    async with double(port=8765) as made:
        yield made
