"""How deep arguments may be."""

import pytest

from protocol.content import Tool
from tests.engine.machine import weather
from wsserver.engine.arguments import fault

ANY = Tool(name="weather")


@pytest.mark.parametrize("depth", [0, 1, 63, 64])
def test_as_deep_as_any_frame(depth: int) -> None:
    for text in ("[" * depth + "1" + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        assert fault(weather(arguments=text), ANY, 1000) is None


@pytest.mark.parametrize("depth", [65, 66, 500, 5000])
def test_deeper_is_not_valid(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        assert fault(weather(arguments=text), ANY, 100_000) is not None


def test_a_long_list_is_not_deep() -> None:
    text = "[" + ",".join(["{}"] * 5000) + "]"
    assert fault(weather(arguments=text), ANY, 100_000) is None
