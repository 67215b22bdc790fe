"""A client machine with both its ends in the test's hands."""

import pytest

from tests.protocol_client.wire import Wire


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def online(wire: Wire) -> Wire:
    """A machine that was welcomed."""
    wire.connect()
    wire.events()
    return wire
