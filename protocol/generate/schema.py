"""The JSON Schema of every frame, in both directions."""

from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from protocol import commands, content, control, events
from protocol.generate.docstrings import members_of, summary_of
from protocol.ids import SUBPROTOCOL, VERSION

Schema = dict[str, Any]

UNIONS: dict[str, Any] = {
    "ClientFrame": commands.ClientFrame,
    "LogEvent": events.LogEvent,
    "ControlFrame": control.ControlFrame,
}
"""The unions of frames by their names, the client's first."""

_UNION_SUMMARIES = {
    "ClientFrame": "A frame from the client.",
    "LogEvent": "A numbered event of a conversation, from the server.",
    "ControlFrame": "A frame about the connection, from the server.",
}


def json_schema() -> Schema:
    """Returns one schema, of any frame.

    `$defs` has each frame and what it is made of under the name of its class,
    and the unions `ClientFrame`, `LogEvent`, `ControlFrame` and `ServerFrame`.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:wsserver:v{VERSION}:frames",
        "title": SUBPROTOCOL,
        "description": (
            f"Every frame of the wire protocol, version {VERSION}. Members that a"
            " schema does not name are ignored."
        ),
        "anyOf": [_ref("ClientFrame"), _ref("ServerFrame")],
        "$defs": definitions(),
    }


def definitions() -> dict[str, Schema]:
    """Returns what `$defs` holds."""
    _, structs = msgspec.json.schema_components(
        list(UNIONS.values()), ref_template="#/$defs/{name}"
    )
    unions: dict[str, Schema] = {
        name: {
            "description": _UNION_SUMMARIES[name],
            "anyOf": [_ref(one.__name__) for one in get_args(union)],
        }
        for name, union in UNIONS.items()
    }
    unions["ServerFrame"] = {
        "description": "A frame from the server.",
        "anyOf": [_ref("LogEvent"), _ref("ControlFrame")],
    }
    found = unions | {name: _struct(name, one) for name, one in structs.items()}
    found["ToolResult"]["oneOf"] = [{"required": ["output"]}, {"required": ["error"]}]
    found["ErrorFrame"]["not"] = {"required": ["conversation"]}
    return found


def struct_named(name: str) -> type[Struct]:
    """Returns the class of a definition that is not a union."""
    for module in (content, events, commands, control):
        if name in vars(module):
            return vars(module)[name]
    raise LookupError(name)


def _struct(name: str, generated: Schema) -> Schema:
    struct = struct_named(name)
    members = members_of(struct)
    properties: dict[str, Schema] = {}
    for member, schema in generated["properties"].items():
        plain: Schema = _plain(schema)
        properties[member] = _described(plain, members.get(member))
    tag = struct.__struct_config__.tag
    if tag is not None:
        properties["type"] = {"const": tag}
    return {
        "title": name,
        "description": summary_of(struct),
        "type": "object",
        "properties": properties,
        "required": generated["required"],
    }


def _described(schema: Schema, member: str | None) -> Schema:
    """Puts what the Struct says of a member before what its type says."""
    if member is None:
        return schema
    if "pattern" in schema:
        member = f"{member} ({schema['description']})"
    return schema | {"description": member}


def _plain(schema: Any) -> Any:
    """Drops `discriminator`, which is OpenAPI's and not JSON Schema's."""
    if isinstance(schema, dict):
        pairs = cast("Schema", schema).items()
        return {key: _plain(one) for key, one in pairs if key != "discriminator"}
    if isinstance(schema, list):
        return [_plain(one) for one in cast("list[Any]", schema)]
    return schema


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
