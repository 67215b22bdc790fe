"""Values made up for JSON Schemas fit them, and stay small whatever they say."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.providers.demo.sample import sample

numbers = st.sampled_from(["integer", "number"])


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(-1000, 1000)
    return st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["boolean", "null", "string"])}),
        st.fixed_dictionaries({"type": numbers}, optional={"minimum": bounds}),
        st.fixed_dictionaries({"type": numbers}, optional={"maximum": bounds}),
        st.builds(
            lambda kind, low, extent: {
                "type": kind,
                "minimum": low,
                "maximum": low + extent,
            },
            numbers,
            bounds,
            st.integers(0, 10),
        ),
        st.fixed_dictionaries({"type": numbers, "exclusiveMinimum": bounds}),
        st.fixed_dictionaries({"type": numbers, "multipleOf": st.integers(1, 50)}),
        st.builds(
            lambda least, extra: {
                "type": "string",
                "minLength": least,
                "maxLength": least + extra,
            },
            st.integers(0, 50),
            st.integers(0, 5),
        ),
        st.fixed_dictionaries(
            {"enum": st.lists(st.integers() | st.text(), min_size=1, unique=True)}
        ),
        st.fixed_dictionaries({"const": st.integers() | st.text()}),
        st.sampled_from(["date", "date-time", "email", "uri", "uuid"]).map(
            lambda name: {"type": "string", "format": name}
        ),
    )


def containers(
    inner: st.SearchStrategy[dict[str, Any]],
) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.dictionaries(st.text(max_size=5), inner, max_size=4).map(
            lambda members: {
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
        ),
        st.builds(
            lambda item, least, extra: {
                "type": "array",
                "items": item,
                "minItems": least,
                "maxItems": least + extra,
            },
            inner,
            st.integers(0, 4),
            st.integers(0, 3),
        ),
        inner.map(lambda only: {"anyOf": [only, {"type": "null"}]}),
        inner.map(lambda only: {"allOf": [only]}),
        inner.map(lambda only: {"$ref": "#/$defs/a~1b", "$defs": {"a/b": only}}).filter(
            lambda schema: "$ref" not in repr(schema["$defs"])
        ),
    )


@given(st.recursive(scalars(), containers, max_leaves=8))
def test_the_sample_is_valid(schema: dict[str, Any]):
    if "'$ref'" in repr(schema) and "$ref" not in schema:
        return  # the strategy's definitions are only found at the root
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    value = sample(schema)
    assert validator.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "string", "default": "given"}, "given"),
        ({"type": "string", "examples": ["given"]}, "given"),
        ({"items": {"type": "boolean"}}, [True]),
        (
            {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]},
            [1, 2],
        ),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, 0.25),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"const": 1}}},
                    {"properties": {"b": {"const": 2}}},
                ]
            },
            {"a": 1, "b": 2},
        ),
    ],
)
def test_what_a_schema_says_is_what_is_made(schema: dict[str, Any], value: Any):
    assert sample(schema) == value


def test_a_hint_fills_a_free_string():
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius"]},
            "other": {"type": "string"},
        },
    }
    value = sample(schema, lambda name: "Oslo" if name == "city" else None)
    assert value == {"city": "Oslo", "unit": "celsius", "other": "other"}


def nodes(value: Any) -> int:
    match value:
        case dict():
            return 1 + sum(map(nodes, value.values()))
        case list():
            return 1 + sum(map(nodes, value))
        case _:
            return 1


WIDE = {f"p{number}": {"$ref": "#"} for number in range(20)}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}]},
        {"type": "object", "properties": WIDE, "required": list(WIDE)},
        {"type": "array", "minItems": 10**9, "items": {"$ref": "#"}},
        {"type": "string", "minLength": 10**12},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/nowhere/to/be/found"},
    ],
)
def test_a_hostile_schema_makes_a_small_value(schema: dict[str, Any]):
    value = sample(schema)
    assert nodes(value) < 10_000
    assert len(repr(value)) < 200_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "enum",
    "const",
    "default",
    "examples",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "format",
    "$ref",
    "anyOf",
    "allOf",
]


@given(st.dictionaries(st.sampled_from(KEYWORDS), JSON | st.sampled_from(KEYWORDS)))
def test_a_malformed_schema_is_no_error(schema: dict[str, Any]):
    sample(schema)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "integer", "number"])},
        optional=dict.fromkeys(KEYWORDS[1:], JSON),
    )
)
def test_malformed_keywords_are_no_error(schema: dict[str, Any]):
    sample(schema)
