"""Makes up a JSON value that fits a JSON Schema, roughly.

It looks at types, enumerations, defaults, bounds, formats, alternatives and
local references; not at patterns, conditions or negations. The schema comes
from a client: whatever it says, the value stays small, and what is malformed
counts as not said.
"""

import math
from collections.abc import Callable
from typing import Any

Hint = Callable[[str], str | None]
"""Proposes a string for the property of that name; None for no idea."""

_MAX_DEPTH = 12
_OPTIONAL_DEPTH = 4
_MAX_VALUES = 500
_MAX_ITEMS = 20
_MAX_LENGTH = 1000
_MAX_NUMBER = 1e15

_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def no_hint(name: str) -> str | None:
    """Has no idea."""


def sample(schema: Any, hint: Hint = no_hint) -> Any:
    """Returns a JSON value for `schema`.

    Args:
        schema: A JSON Schema.
        hint: Asked for every string that is free to be anything.
    """
    return _Sampler(schema, hint).value(schema, "", 0)


class _Sampler:
    """Walks one schema; as many values as `left` says may still be made."""

    def __init__(self, root: Any, hint: Hint) -> None:
        self.root = root
        self.hint = hint
        self.left = _MAX_VALUES

    def value(self, schema: Any, name: str, depth: int) -> Any:
        known = self.resolve(schema, depth)
        if not known:
            return None
        named = _named_values(known)
        if named:
            return named[0]
        return self.typed(known, name, depth)

    def typed(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        match _type(schema):
            case "object":
                value = self.object(schema, depth)
            case "array":
                value = self.array(schema, name, depth)
            case "string":
                value = self.string(schema, name)
            case "integer":
                value = math.floor(_number(schema))
            case "number":
                value = _number(schema)
            case "boolean":
                value = True
            case _:
                value = None
        return value

    def resolve(self, schema: Any, depth: int) -> dict[str, Any]:
        """Follows references, takes the first alternative, merges `allOf`."""
        self.left -= 1
        known = _mapping(schema)
        if depth > _MAX_DEPTH or self.left < 0:
            return {}
        if "$ref" in known:
            return self.resolve(self.target(known["$ref"]), depth + 1)
        for key in ("anyOf", "oneOf"):
            for alternative in _sequence(known.get(key))[:1]:
                return self.resolve(alternative, depth + 1)
        for part in _sequence(known.get("allOf"))[:_MAX_ITEMS]:
            known = _merged(known, self.resolve(part, depth + 1))
        return known

    def target(self, reference: Any) -> Any:
        """Returns what a reference within the schema points to, else None."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node = self.root
        for step in reference.split("/")[1:]:
            node = _mapping(node).get(step.replace("~1", "/").replace("~0", "~"))
        return node

    def object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = _mapping(schema.get("properties"))
        names = list(properties)
        if depth >= _OPTIONAL_DEPTH or len(names) > _MAX_ITEMS:
            names = [
                name
                for name in _sequence(schema.get("required"))
                if isinstance(name, str)
            ]
        return {
            name: self.value(properties.get(name), name, depth + 1) for name in names
        }

    def array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        most = min(_size(schema, "maxItems", _MAX_ITEMS), _MAX_ITEMS)
        least = 0 if depth >= _OPTIONAL_DEPTH else 1
        schemas = list(_sequence(schema.get("prefixItems")))
        items = schema.get("items", {"type": "string"})
        wanted = max(_size(schema, "minItems", least), len(schemas))
        schemas += [items] * (min(wanted, _MAX_ITEMS) - len(schemas))
        return [self.value(item, name, depth + 1) for item in schemas[:most]]

    def string(self, schema: dict[str, Any], name: str) -> str:
        known = schema.get("format")
        text = _FORMATS.get(known) if isinstance(known, str) else None
        text = text or self.hint(name) or name or "text"
        least = min(_size(schema, "minLength", 0), _MAX_LENGTH)
        return text.ljust(least, ".")[: _size(schema, "maxLength", _MAX_LENGTH)]


def _named_values(schema: dict[str, Any]) -> list[Any]:
    """Returns values that the schema itself names, the best first."""
    named = [schema[key] for key in ("const", "default") if key in schema]
    return [*named, *_sequence(schema.get("enum")), *_sequence(schema.get("examples"))]


def _type(schema: dict[str, Any]) -> str:
    named = schema.get("type")
    for kind in [named, *_sequence(named)]:
        if isinstance(kind, str):
            return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _number(schema: dict[str, Any]) -> float:
    low = max(_bounds(schema, "minimum", "exclusiveMinimum"), default=-math.inf)
    high = min(_bounds(schema, "maximum", "exclusiveMaximum"), default=math.inf)
    if low < 1 < high:
        value = 1
    elif math.isinf(high):
        value = low + 1
    elif math.isinf(low):
        value = high - 1
    else:
        value = (low + high) / 2
    for step in _bounds(schema, "multipleOf"):
        if step > 0:
            return math.ceil(value / step) * step
    return value


def _bounds(schema: dict[str, Any], *keys: str) -> list[float]:
    values = [schema.get(key) for key in keys]
    return [
        value
        for value in values
        if isinstance(value, int | float) and abs(value) < _MAX_NUMBER
    ]


def _size(schema: dict[str, Any], key: str, default: int) -> int:
    value = schema.get(key)
    return value if isinstance(value, int) and value >= 0 else default


def _merged(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    properties = _mapping(whole.get("properties")) | _mapping(part.get("properties"))
    required = [*_sequence(whole.get("required")), *_sequence(part.get("required"))]
    merged = part | whole
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required
    return merged


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
