"""JSON Schemas that clients give."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from wsserver.engine.schema_cost import Allowance
from wsserver.engine.schemas import misfit, schema_error, schema_fault


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
    assert len(said) == len("$: ") + 500


def test_a_pattern_can_not_take_for_ever() -> None:
    schema = {"pattern": "^(a|a)*(?=b)$"}
    assert misfit(schema, "a" * 200) is not None


@contextmanager
def soon(seconds: float = 0.5) -> Generator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def doubling(levels: int, end: dict[str, Any]) -> dict[str, Any]:
    """A schema that is written out twice as large with each level."""
    definitions: dict[str, Any] = {
        f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2}
        for level in range(levels)
    }
    definitions[f"a{levels}"] = end
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


def test_references_that_double_are_refused_at_once() -> None:
    with soon():
        assert schema_fault(doubling(5, {"type": "string"})) is None
        assert misfit(doubling(5, {"type": "string"}), 1) is not None
        for schema in (
            doubling(36, {"type": "string"}),
            {"properties": {"a": {"items": doubling(36, {})}}, **doubling(36, {})},
        ):
            said = schema_fault(schema)
            assert said is not None
            assert "written out" in said
            assert misfit(schema, "x") is None


@pytest.mark.parametrize("reference", ["#", "#me", "#/properties/deep/items"])
def test_a_recursive_schema_is_taken(reference: str) -> None:
    tree = {
        "$anchor": "me",
        "properties": {
            "left": {"$ref": reference},
            "right": {"$ref": reference},
            "deep": {"items": {"type": "object"}},
            "name": {"type": "string"},
        },
    }
    value: dict[str, Any] = {"name": "x"}
    for _ in range(20):
        value = {"left": value, "right": {"name": "y"}}
    assert schema_fault(tree) is None
    assert misfit(tree, value) is None
    assert misfit(tree, {"name": 1}) is not None


def test_recursion_with_many_ways_is_bounded_by_the_value() -> None:
    again = {"properties": {"x": {"allOf": [{"$ref": "#"}] * 2}}}
    value: Any = 1
    for _ in range(8):
        value = {"x": value}
    assert schema_fault(again) is None
    assert misfit(again, value) is None
    for _ in range(40):
        value = {"x": value}
    with soon():
        said = misfit(again, value)
    assert said is not None
    assert "too large" in said


def test_a_large_schema_and_a_large_value_are_not_multiplied() -> None:
    schema = {"items": {"allOf": [{"type": "integer"}] * 2_000}}
    assert misfit(schema, [1] * 20) is None
    with soon():
        assert misfit(schema, list(range(100_000))) is not None
    rows = {"items": {"properties": {name: {"type": "integer"} for name in "abcdef"}}}
    with soon():
        assert misfit(rows, [dict.fromkeys("abcdef", 1)] * 5_000) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "[\\w\\W]{5000}",
        "((a{1000}){1000}){100}",
        "(?=((a{100}){100}){100})",
        "x" * 5_000,
        "\\p{L}{300}",
    ],
)
def test_a_pattern_that_is_large_when_compiled_is_refused(pattern: str) -> None:
    with soon():
        assert schema_fault({"pattern": pattern})
        assert schema_fault({"patternProperties": {pattern: {}}})


def test_patterns_of_all_schemas_are_counted_together() -> None:
    allowance = Allowance()
    schema = {"properties": {f"p{i}": {"pattern": f"^p{i}"} for i in range(30)}}
    assert [schema_fault(schema, allowance) for _ in range(2)] == [None, None]
    said = schema_fault(schema, allowance)
    assert said is not None
    assert "patterns" in said


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a|b)*a(a|b){400}c", "ab" * 50_000),
        ("(?=a*b)c", "a" * 100_000),
        ("[ab]*a[ab]{1000}c", "ab" * 50_000),
    ],
)
def test_a_long_text_and_a_costly_pattern_are_not_tried(
    pattern: str, text: str
) -> None:
    with soon(0.2):
        assert misfit({"not": {"pattern": pattern}}, text)
        assert misfit({"propertyNames": {"pattern": pattern}}, {text: 1})
    assert misfit({"pattern": "^[a-z]+$"}, text) is None


@pytest.mark.parametrize(
    "pattern", ["^[\\p{L}' -]+$", "^[a-z0-9-]{1,64}$", "^(?!.*bad)", "^\\d{4}-\\d{2}$"]
)
def test_usual_patterns_are_taken(pattern: str) -> None:
    schema = {"items": {"pattern": pattern}}
    assert schema_fault(schema) is None
    assert "too large" not in (misfit(schema, ["word" * 5] * 100) or "")


def test_a_schema_is_limited_in_bytes_and_stays_in_itself() -> None:
    assert schema_fault({"description": "x" * 70_000})
    assert schema_fault({"$defs": {"a": {"$id": "urn:x"}}})
    assert schema_fault({"$ref": "urn:x#/$defs/a", "$id": "urn:x", "$defs": {"a": {}}})
    assert schema_fault({"properties": {"id": {"type": "string"}}}) is None


@pytest.mark.parametrize("end", ["", "#"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "draft/2019-09"])
def test_a_schema_is_one_of_the_draft_that_it_names(
    draft: str, scheme: str, end: str
) -> None:
    named = {"$schema": f"{scheme}://json-schema.org/{draft}/schema{end}"}
    assert schema_error({"items": [{}], **named}) is None, "the newest has no such"
    assert schema_error({"type": "nothing", **named}) is not None


@pytest.mark.parametrize("draft", ["https://example.org/mine", "http://127.0.0.1:9/x"])
def test_a_draft_that_nobody_knows_is_taken_for_the_newest(draft: str) -> None:
    assert schema_error({"$schema": draft}) is None
    said = schema_error({"$schema": draft, "items": [{}]})
    assert said is not None
    assert said.startswith("$['items']: ")


def test_the_place_is_short_whatever_members_are_called() -> None:
    said = misfit({"additionalProperties": {"type": "null"}}, {"x" * 10_000: 1})
    assert said is not None
    assert len(said) < 300
