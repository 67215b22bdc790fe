"""Each promised behaviour names tests, and they are there."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from protocol.codes import CLOSES, ERRORS
from protocol.commands import ClientFrame
from protocol.control import ControlFrame
from protocol.events import LogEvent, Reason, Status, ToolStatus

HERE = Path(__file__).parent
CASES = {
    "I": (1, 2, 4, 6, 8, 10, 11, 12, 14, 15, 18, 19, 20),
    "R": (1, 2, 3, 4, 6, 8, 9, 10, 12, 14, 15, 18, 19, 20),
    "T": (1, 2, 4, 5, 6, 8, 9, 10, 12, 14, 16, 18, 19),
    "P": (1, 2, 4, 5, 6, 8, 10, 12, 13, 15),
    "L": (1, 3, 4, 5, 6, 7, 9, 11, 12, 14, 15, 16, 18, 19),
    "C": (1, 2, 4, 5, 6, 8, 10, 12, 14, 15, 17, 18),
}

with (HERE / "manifest.toml").open("rb") as _file:
    BEHAVIOURS: list[dict[str, Any]] = tomllib.load(_file)["behaviour"]


@cache
def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=[b["id"] for b in BEHAVIOURS])
def test_a_behaviour_has_its_tests(behaviour: dict[str, Any]) -> None:
    tests = behaviour.get("tests", [])
    assert bool(tests) != bool(behaviour.get("open")), "tests, or why there are none"
    for test in tests:
        name, _, function = test.partition("::")
        assert (HERE / name).is_file(), test
        assert function.startswith("test_") or name == "conftest.py", test
        assert function in functions(HERE / name), test


def test_every_code_is_a_behaviour() -> None:
    ids = {behaviour["id"] for behaviour in BEHAVIOURS}
    codes = {f"ERR-{code}" for code in ERRORS} | {f"CLOSE-{code:d}" for code in CLOSES}
    assert codes <= ids, sorted(codes - ids)


def tags(union: Any) -> set[str]:
    return {str(frame.__struct_config__.tag) for frame in get_args(union)}


def test_every_row_of_the_protocol_is_a_behaviour() -> None:
    """What is new in the protocol's types needs a behaviour of its own."""
    rows = {
        "CMD": tags(ClientFrame),
        "EV": tags(LogEvent),
        "CTL": tags(ControlFrame),
        "DONE": {*get_args(Status), *get_args(Reason)},
        "RESULT": set(get_args(ToolStatus)),
    }
    known = {f"{kind}-{name}" for kind, names in rows.items() for name in names}
    assert len(known) > 50
    ids = {behaviour["id"] for behaviour in BEHAVIOURS}
    assert known <= ids, sorted(known - ids)


def test_a_case_that_is_played_is_in_its_behaviour() -> None:
    """A test that is named after a case stands with it."""
    played = {
        (f"{kind.upper()}-{number}", f"whole/{path.name}::{function}")
        for path in (HERE / "whole").glob("test_case_*.py")
        for function in functions(path)
        for kind, number in re.findall(r"(?<=_)([irtpl])(\d\d)(?=_)", function)
    }
    assert len(played) > 40
    named = {(b["id"], test) for b in BEHAVIOURS for test in b.get("tests", [])}
    assert played <= named, sorted(played - named)


def test_every_known_case_is_a_behaviour_once() -> None:
    ids = [behaviour["id"] for behaviour in BEHAVIOURS]
    assert len(ids) == len(set(ids))
    known = {f"{kind}-{number:02}" for kind, all_ in CASES.items() for number in all_}
    assert known <= set(ids), sorted(known - set(ids))
