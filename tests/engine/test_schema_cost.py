"""What schemas and patterns may cost, at the edge of each limit."""

from collections.abc import Callable
from typing import Any

import pytest

from wsserver.engine.pattern_cost import PatternCost
from wsserver.engine.schema_cost import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    MAX_PATTERN_CHARACTERS,
    MAX_PATTERNS,
)
from wsserver.engine.schemas import misfit, schema_fault


def of_bytes(size: int) -> dict[str, Any]:
    return {"title": "x" * (size - len('{"title":""}'))}


def of_depth(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def of_nodes(count: int) -> dict[str, Any]:
    return {"allOf": [{}] * (count - 2)}


def of_patterns(count: int) -> dict[str, Any]:
    members = {f"p{n}": {"pattern": "^a"} for n in range(count - 1)}
    return {"properties": members, "patternProperties": {"^b": True}}


def of_characters(count: int) -> dict[str, Any]:
    lengths = [1000] * (count // 1000) + [count % 1000]
    return {"allOf": [{"pattern": "x" * length} for length in lengths]}


@pytest.mark.parametrize(
    ("made", "most", "told"),
    [
        (of_bytes, MAX_BYTES, f"takes {MAX_BYTES + 1} bytes; {MAX_BYTES} are allowed"),
        (of_depth, MAX_DEPTH, f"nested more than {MAX_DEPTH} deep"),
        (of_nodes, MAX_NODES, f"{MAX_NODES} lists and objects are allowed"),
        (of_patterns, MAX_PATTERNS, f"too many patterns; {MAX_PATTERNS} with"),
        (
            of_characters,
            MAX_PATTERN_CHARACTERS,
            f"{MAX_PATTERN_CHARACTERS} characters together are allowed",
        ),
    ],
)
def test_a_schema_may_take_all_that_is_allowed_and_no_more(
    made: Callable[[int], dict[str, Any]], most: int, told: str
) -> None:
    assert schema_fault(made(most)) is None
    assert told in (schema_fault(made(most + 1)) or "")


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("x" * 63, 50),  # small: a twentieth of a step for each character
        ("x" * 64, 2_000),
        ("x" * 60 + "a{0}", 2_000),
        ("x" * 60 + "a{1}", 2_000),
        ("a{64}", 10_000),
        ("a{2,64}", 14_000),
        ("(a{8}){8}", 18_000),
        ("\\w{8}", 10_000),
        ("(?i)abcd{2}", 5_500),
        ("a{99999999}", 300_000),
        ("(?=a)", 50 + 2_000 + 1_000**2 // 14),
        ("(a)\\1", 50 + 2_000 + 1_000**2 // 14),
    ],
)
def test_what_a_search_in_a_thousand_characters_costs(pattern: str, steps: int) -> None:
    assert PatternCost(pattern).steps(1_000) == steps


@pytest.mark.parametrize(
    "itself", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}]}]
)
def test_what_is_itself_in_place_is_looked_at_once(itself: dict[str, Any]) -> None:
    schema = {"type": "string", **itself}
    assert misfit(schema, "x") is None
    assert misfit(schema, 1) == '$: 1 is not of type "string"'


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("#/$defs/a", "a"),
        ("#/$defs/a~1b", "a/b"),
        ("#/$defs/a~0b", "a~b"),
        ("#/$defs/a~01b", "a~1b"),
        ("#/$defs/a%20b", "a b"),
        ("#/$defs/a/not", "a"),
        ("#/$defs/a/not/allOf/0", "a"),
        ("#me", "a"),
    ],
)
def test_a_reference_is_followed_however_it_is_written(
    reference: str, name: str
) -> None:
    large = {"$anchor": "me", "not": {"allOf": [{"allOf": [{}] * (MAX_NODES // 2)}]}}
    schema = {"$defs": {name: large}, "allOf": [{"$ref": reference}]}
    assert schema_fault(schema) is None
    schema["allOf"] *= 2
    assert "when each `$ref` is written out" in (schema_fault(schema) or "")
