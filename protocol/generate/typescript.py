"""TypeScript types of every frame, for clients in browsers and in Node."""

from typing import Any, cast

import orjson

from protocol.codes import CLOSES, ERRORS
from protocol.generate.schema import Schema, definitions
from protocol.ids import MAX_SEQ, SUBPROTOCOL, VERSION

_HEAD = f"""\
// The frames of {SUBPROTOCOL}, version {VERSION}. Made by `python -m protocol.generate`
// from the Structs in protocol/; do not edit.
//
// Narrow a frame by `type`; of the two kinds of `error` the event has a
// `conversation`. Ignore frames whose `type` is not here, and unknown members.

/** The version for `hello`. */
export type ProtocolVersion = {VERSION};

/** What to offer as the WebSocket's subprotocol. */
export type Subprotocol = "{SUBPROTOCOL}";
"""

_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def typescript() -> str:
    """Returns the text of the declaration file."""
    blocks = [_HEAD]
    blocks += [_declaration(name, one) for name, one in definitions().items()]
    blocks += [
        _alias("ErrorCode", "Codes of errors; a later server may have more.", ERRORS),
        _alias("CloseCode", "Codes with which the server closes.", map(int, CLOSES)),
    ]
    return "\n".join(blocks)


def _declaration(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f"{_comment(schema)}export type {name} = {_union(schema['anyOf'])};\n"
    required = set(schema["required"])
    members = [
        _member(member, one, member in required)
        for member, one in schema["properties"].items()
    ]
    if "not" in schema:
        members += [f"  {one}?: undefined;" for one in schema["not"]["required"]]
    body = "\n".join(members)
    return f"{_comment(schema)}export interface {name} {{\n{body}\n}}\n"


def _member(name: str, schema: Schema, required: bool) -> str:
    """A member that may be absent and has no other use for null goes without it."""
    if "default" in schema and "anyOf" in schema:
        schema = schema | {
            "anyOf": [x for x in schema["anyOf"] if x != {"type": "null"}]
        }
    mark = "" if required else "?"
    return f"{_comment(schema, '  ')}  {name}{mark}: {_type(schema)};"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return _union(schema["anyOf"])
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values is not None:
        return " | ".join(map(_literal, values))
    kind = schema.get("type")
    if kind == "array":
        of = _type(schema["items"])
        return f"({of})[]" if " " in of else f"{of}[]"
    if kind == "object":
        return f"Record<string, {_type(schema.get('additionalProperties', {}))}>"
    if isinstance(kind, list):  # one that may be absent, or null
        kinds = cast("list[str]", kind)
        kind = next(one for one in kinds if one != "null")
    return "unknown" if kind is None else _SCALARS[kind]


def _union(options: list[Schema]) -> str:
    return " | ".join(map(_type, options))


def _alias(name: str, doc: str, values: Any) -> str:
    options = "".join(f"\n  | {_literal(value)}" for value in values)
    return f"/** {doc} */\nexport type {name} ={options};\n"


def _literal(value: Any) -> str:
    return orjson.dumps(value).decode()


def _comment(schema: Schema, indent: str = "") -> str:
    """What a schema says beyond its type."""
    lines = [line for line in (schema.get("description"), _range(schema)) if line]
    if not lines:
        return ""
    paragraphs = "\n\n".join(lines).split("\n")
    if len(paragraphs) == 1:
        return f"{indent}/** {paragraphs[0]} */\n"
    inner = "".join(f"{indent} * {line}".rstrip() + "\n" for line in paragraphs)
    return f"{indent}/**\n{inner}{indent} */\n"


def _range(schema: Schema) -> str | None:
    options = schema.get("anyOf", [schema])
    if len(options) != 1:
        return None
    least, most = options[0].get("minimum"), options[0].get("maximum")
    if most in (None, MAX_SEQ):
        return None
    return f"From {least} to {most}." if least is not None else f"Up to {most}."
