"""Names end with their unit in full; see CONTRIBUTING.md."""

import re
from pathlib import Path

import pytest
from msgspec import Struct

from protocol import commands, content, control, events

ROOT = Path(__file__).parents[1]
ABBREVIATED = re.compile(
    r"\b\w+_(?:s|secs?|msecs?|millis|kb|kib|mb|mib|mins?|hrs?)\b", re.IGNORECASE
)


def on_the_wire() -> set[str]:
    return {
        name
        for module in (commands, content, control, events)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Struct)
        for name in one.__struct_fields__
    }


@pytest.mark.parametrize("package", ["wsserver", "protocol", "client_demo"])
def test_no_unit_is_abbreviated(package: str) -> None:
    found = {
        name
        for path in (ROOT / package).rglob("*.py")
        for name in ABBREVIATED.findall(path.read_text("utf-8"))
    }
    assert found <= on_the_wire(), sorted(found - on_the_wire())


@pytest.mark.parametrize("name", ["timeout_s", "_CLOSE_S", "size_kb", "wait_secs"])
def test_what_is_abbreviated_is_found(name: str) -> None:
    assert ABBREVIATED.fullmatch(name)


@pytest.mark.parametrize("name", ["wait_seconds", "tokens", "class_", "at_ms"])
def test_nothing_else_is(name: str) -> None:
    assert not ABBREVIATED.fullmatch(name)
