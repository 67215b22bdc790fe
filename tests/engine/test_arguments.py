"""How deep arguments may be."""

import pytest

from protocol.codec import decode_command
from protocol.content import Tool
from tests.engine.machine import weather
from wsserver.engine.arguments import fault

ANY = Tool(name="weather")


@pytest.mark.parametrize("depth", [0, 1, 62, 63])
def test_as_deep_as_any_frame(depth: int) -> None:
    for text in ("[" * depth + "1" + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        assert fault(weather(arguments=text), ANY, 1000) is None
        frame = b'{"type":"ping","t":%b}' % text.encode()
        assert decode_command(frame, max_bytes=1000), "a client may say as much"


@pytest.mark.parametrize("depth", [64, 65, 500, 5000])
def test_deeper_is_not_valid(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        assert fault(weather(arguments=text), ANY, 100_000) is not None


def test_a_long_list_is_not_deep() -> None:
    text = "[" + ",".join(["{}"] * 5000) + "]"
    assert fault(weather(arguments=text), ANY, 100_000) is None


def test_arguments_are_as_long_as_they_would_be_written_again() -> None:
    short = f"[{','.join(['1e9'] * 10)}]"
    assert fault(weather(arguments=short), ANY, 131) is None
    said = fault(weather(arguments=short), ANY, 130)
    assert said == "The arguments are longer than 130 bytes; the tool was not run."
