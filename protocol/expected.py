"""What a frame's member may be, in words, read from the frame's JSON Schema."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

Step = str | int | None
"""A member's name, an index, or None for any member of a free object."""

ANYTHING = "any JSON value"

_Schema = dict[str, Any]
_REF = "#/$defs/"
_NOUNS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def expected(frame: type[Struct], steps: Sequence[Step]) -> str:
    """Returns what comes after "must be": `a whole number from 1 to 9 or null`.

    Args:
        frame: The frame's class.
        steps: Where in it the member stands.
    """
    found, defs = _schema(frame)
    for step in steps:
        found = None if found is None else _member(found, step, defs)
    return "something else" if found is None else _in_words(found)


@cache
def _schema(frame: type[Struct]) -> tuple[_Schema | None, _Schema]:
    (root,), defs = msgspec.json.schema_components(
        [frame], ref_template=_REF + "{name}"
    )
    return root, defs


def _member(of: _Schema, step: Step, defs: _Schema) -> _Schema | None:
    if not of:
        return of
    if "$ref" in of:
        of = defs[of["$ref"].removeprefix(_REF)]
    if "discriminator" in of and of["discriminator"]["propertyName"] == step:
        return {"enum": list(of["discriminator"]["mapping"])}
    if "anyOf" in of:
        inner = (_member(one, step, defs) for one in of["anyOf"])
        return next((one for one in inner if one is not None), None)
    if isinstance(step, str):
        return of.get("properties", {}).get(step)
    if step is None:
        return of.get("additionalProperties", {})
    return of.get("items")


def _in_words(of: _Schema) -> str:
    if not of:
        return ANYTHING
    if "anyOf" in of and "discriminator" not in of:
        return " or ".join(_in_words(one) for one in of["anyOf"])
    if "enum" in of:
        words = ", ".join(f"`{value}`" for value in of["enum"])
        return words if len(of["enum"]) == 1 else f"one of {words}"
    noun = _NOUNS[of.get("type", "object")]
    if "pattern" in of:
        return f"{noun} ({of['description']})"
    if of.get("type") == "array":
        return of.get("description", noun)
    return noun + _range(of)


def _range(of: _Schema) -> str:
    match of:
        case {"maxLength": longest}:
            return f" of at most {longest} characters"
        case {"minimum": least, "maximum": most}:
            return f" from {least:.16g} to {most:.16g}"
        case {"exclusiveMinimum": least, "maximum": most}:
            return f" above {least:.16g} and up to {most:.16g}"
        case {"minimum": least}:
            return f" of at least {least:.16g}"
        case _:
            return ""


def kind_of(value: Any) -> str:
    """Returns what a JSON value is, such as `a list`."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
