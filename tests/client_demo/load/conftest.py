"""The load tester runs against real sockets: real time, and no virtual loop."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
