"""Event loops whose time jumps when all tasks wait: hours pass at once."""

from typing import Any

import async_solipsism
import pytest
import trio.testing


def jumping_loop() -> async_solipsism.EventLoop:
    """An asyncio loop whose time jumps to the next deadline, by a tick at the least.

    It would round a wait of less than half a tick to none, and spin.
    """
    loop = async_solipsism.EventLoop()
    clock = loop._selector.clock
    advance = clock.advance
    clock.advance = lambda delta: delta and advance(max(delta, clock.resolution))
    return loop


@pytest.fixture(params=["asyncio", "trio"], name="anyio_backend")
def virtual_time(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Runs each test under both; nothing may happen outside of the event loop."""
    if request.param == "asyncio":
        return "asyncio", {"loop_factory": jumping_loop}
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@pytest.fixture(name="anyio_backend")
def jumping_time() -> tuple[str, dict[str, Any]]:
    """Runs each test under trio alone, whose time jumps: for waits of minutes and hours."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
