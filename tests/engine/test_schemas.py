"""JSON Schemas that clients give."""

from typing import Any

import pytest

from wsserver.engine.schemas import misfit, schema_fault


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"pattern": "("},
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"$schema": "https://example.org/mine"},
    ],
)
def test_what_is_no_schema_is_said_and_nothing_is_fetched(
    schema: dict[str, Any],
) -> None:
    assert schema_fault(schema)
    assert misfit(schema, 1) is None


def test_a_schema_that_never_ends_is_no_schema() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    assert schema_fault(schema)


def test_what_does_not_fit_is_said_with_its_place() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    assert schema_fault(schema) is None
    assert misfit(schema, {"a": [1, 2**70]}) is None
    said = misfit(schema, {"a": [1, "x"]})
    assert said == '$[\'a\'][1]: "x" is not of type "integer"'


def test_what_is_said_is_short() -> None:
    said = misfit({"maxLength": 1}, "x" * 10_000)
    assert said is not None
    assert len(said) < 600


def test_a_pattern_can_not_take_for_ever() -> None:
    schema = {"pattern": "^(a|a)*(?=b)$"}
    assert misfit(schema, "a" * 200) is not None
