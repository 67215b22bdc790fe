"""The shapes of the server's frames, for a client in JavaScript to check them by."""

from typing import cast

import orjson

from protocol.generate.schema import Schema, definitions

_HEAD = """\
// What the members of the server's frames are. Made by `python -m protocol.generate` from
// the Structs in protocol/; do not edit. `frames.js` checks frames by it.
//
// A member with a `?` may be absent, or null. Kinds are those of JSON, and `integer`; of
// a list `[]` says what is in it, and `|` stands between several.
"""

_TABLES = {
    "EVENTS": ("LogEvent", "Of numbered events, by type."),
    "CONTROLS": ("ControlFrame", "Of frames about the connection, by type."),
}


def shapes() -> str:
    """Returns the text of the module."""
    found = definitions()
    blocks = [_HEAD]
    for name, (union, doc) in _TABLES.items():
        frames = [_named(one, found) for one in found[union]["anyOf"]]
        rows = "".join(
            f"  {one['properties']['type']['const']}: {_object(one, found)},\n"
            for one in frames
        )
        blocks.append(f"/** {doc} */\nexport const {name} = {{\n{rows}}};\n")
    return "\n".join(blocks)


def _object(schema: Schema, found: dict[str, Schema]) -> str:
    required = schema["required"]
    members = [
        f"{name}: {_shape(one, found)}"
        if name in required
        else f'"{name}?": {_shape(_without_null(one), found)}'
        for name, one in schema["properties"].items()
        if name != "type" and (name in required or not _is_free(one))
    ]
    return f"{{ {', '.join(members)} }}"


def _without_null(schema: Schema) -> Schema:
    """What a member may be where it is there; absent and null are one."""
    options = schema.get("anyOf", [schema])
    return {"anyOf": [one for one in options if one != {"type": "null"}]}


def _shape(schema: Schema, found: dict[str, Schema]) -> str:
    """An object of a known shape is one here too; of all else the kinds are told."""
    options = schema.get("anyOf", [schema])
    structs = [_named(one, found) for one in options if "$ref" in one]
    if len(options) == len(structs) == 1:
        return _object(structs[0], found)
    kinds = [kind for one in options for kind in _kinds(one)]
    return orjson.dumps("|".join(dict.fromkeys(kinds))).decode()


def _kinds(schema: Schema) -> list[str]:
    if "$ref" in schema:
        return ["object"]
    if "enum" in schema:
        return ["string"]
    if "anyOf" in schema:
        return [kind for one in schema["anyOf"] for kind in _kinds(one)]
    if "type" not in schema:
        return ["any"]
    kind = schema["type"]
    kinds = cast("list[str]", kind) if isinstance(kind, list) else [cast("str", kind)]
    if kinds == ["array"]:
        return [f"{one}[]" for one in _kinds(schema["items"])]
    return kinds


def _named(schema: Schema, found: dict[str, Schema]) -> Schema:
    return found[schema["$ref"].rpartition("/")[2]]


def _is_free(schema: Schema) -> bool:
    return "type" not in schema and "anyOf" not in schema and "enum" not in schema
