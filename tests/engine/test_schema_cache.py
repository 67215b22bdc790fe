"""Schemas are made ready once, and those that are kept are bounded."""

import copy
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from wsserver.engine import schemas
from wsserver.engine.schema_cache import (
    MOST,
    MOST_BYTES,
    NODE_BYTES,
    PATTERN_BYTES,
    Ready,
    SchemaCache,
)
from wsserver.engine.schema_cost import MAX_BYTES, MAX_PATTERNS, Survey
from wsserver.engine.schemas import misfit

TREE: dict[str, Any] = {
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "inner": {"$ref": "#"},
        "kind": {"anyOf": [{"type": "null"}, {"enum": ["a", "b"]}]},
    },
    "required": ["name"],
}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> SchemaCache:
    empty = SchemaCache()
    monkeypatch.setattr(schemas, "_cache", empty)
    return empty


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns what is compiled from here on."""
    asked: list[Any] = []
    real = schemas._validator

    def note(schema: dict[str, Any]) -> jsonschema_rs.Validator:
        asked.append(schema)
        return real(schema)

    monkeypatch.setattr(schemas, "_validator", note)
    return asked


def keep(cache: SchemaCache, schema: dict[str, Any]) -> bytes:
    key = msgspec.json.encode(schema)
    ready = Ready(survey=Survey(schema), validator=jsonschema_rs.validator_for(True))
    cache.keep(key, ready)
    return key


def test_a_schema_is_compiled_once_and_says_of_each_value_what_it_said(
    compiled: list[Any],
) -> None:
    values: list[Any] = [
        {"name": "x", "kind": "a"},
        {"name": "x", "kind": "c"},
        {"name": "X"},
        {"name": "x", "inner": {"name": "y", "inner": {"name": 1}}},
        {"inner": []},
        7,
    ]
    first = [misfit(TREE, value) for value in values]
    again = [misfit(copy.deepcopy(TREE), value) for value in values]
    assert again == first
    assert [said is None for said in first] == [True, False, False, False, False, True]
    assert compiled == [TREE]


def test_another_schema_is_another(compiled: list[Any]) -> None:
    assert misfit({"type": "string"}, 1) is not None
    assert misfit({"type": "integer"}, 1) is None
    assert misfit({"const": 1}, True) is not None
    assert misfit({"const": True}, True) is None
    assert len(compiled) == 4


def test_what_can_not_be_used_is_not_kept(cache: SchemaCache) -> None:
    for schema in ({"type": 1}, {"$ref": "elsewhere"}, {"x": "y" * MAX_BYTES}):
        for _ in range(2):
            assert misfit(schema, 1) is None
    assert len(cache) == cache.bytes == 0


def test_each_check_has_all_that_a_check_may_cost() -> None:
    schema = {"not": {"items": {"anyOf": [{"type": "string"}] * 10}}}
    for _ in range(20):
        assert misfit(schema, list(range(2_000))) is None


def test_so_many_are_kept_and_the_one_that_was_not_used_for_longest_goes(
    cache: SchemaCache,
) -> None:
    keys = [keep(cache, {"const": number}) for number in range(MOST)]
    assert cache.get(keys[0]) is not None
    keys.append(keep(cache, {"const": MOST}))
    assert len(cache) == MOST
    assert [key for key in keys if cache.get(key) is None] == [keys[1]]
    assert cache.bytes == sum(map(len, keys)) - len(keys[1]) + MOST * NODE_BYTES


def test_so_many_bytes_are_kept(cache: SchemaCache) -> None:
    for number in range(100):
        keep(cache, {"const": number, "title": "x" * 60_000})
        assert cache.bytes <= MOST_BYTES
    assert len(cache) == MOST_BYTES // 60_000


def test_patterns_count_for_what_they_take(cache: SchemaCache) -> None:
    for number in range(100):
        keep(cache, {"pattern": f"^{number}", "patternProperties": {"a": True}})
        assert cache.bytes <= MOST_BYTES
    assert len(cache) == MOST_BYTES // PATTERN_BYTES // 2 - 1


def test_lists_and_objects_count_for_what_they_take(cache: SchemaCache) -> None:
    for number in range(100):
        keep(cache, {"const": number, "allOf": [{}] * 1_000})
        assert cache.bytes <= MOST_BYTES
    assert len(cache) == MOST_BYTES // (1_002 * NODE_BYTES + 3_000 + 20)


def test_one_that_is_too_large_takes_the_place_of_no_other(cache: SchemaCache) -> None:
    key = keep(cache, {"const": 1})
    keep(cache, {"allOf": [{"pattern": "a"}] * MAX_PATTERNS})
    assert cache.get(key) is not None
    assert len(cache) == 1
