"""Real sockets' code in virtual time: hours pass at once, nothing sleeps."""

from collections.abc import AsyncGenerator
from typing import Any

import async_solipsism
import pytest

from tests.client_demo.double import Double, double


def virtual_loop() -> async_solipsism.EventLoop:
    """A loop whose time jumps to the next deadline, by a tick at the least.

    It would round a wait of less than half a tick to none, and spin.
    """
    loop = async_solipsism.EventLoop()
    clock = loop._selector.clock
    advance = clock.advance
    clock.advance = lambda delta: delta and advance(max(delta, clock.resolution))
    return loop


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": virtual_loop}


@pytest.fixture
async def server() -> AsyncGenerator[Double]:
    async with double(port=8765) as made:
        yield made
