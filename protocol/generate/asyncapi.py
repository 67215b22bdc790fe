"""The AsyncAPI 3 document: the channel, its operations and messages, the codes."""

from typing import Any, cast, get_args

from msgspec import Struct

from protocol.codes import CLOSES, ERRORS, advice
from protocol.commands import ClientFrame, Command
from protocol.control import ControlFrame, Reply
from protocol.events import LogEvent
from protocol.generate.docstrings import summary_of
from protocol.generate.schema import definitions
from protocol.ids import SUBPROTOCOL, VERSION

Json = dict[str, Any]

_CHANNEL = "#/channels/chat"

_DESCRIPTION = f"""\
One WebSocket carries any number of conversations between a client and language
models. Every conversation is a log of numbered events; a client holds a cursor
into it and resumes from there.

The subprotocol is `{SUBPROTOCOL}`. Frames are text, one JSON object each, UTF-8.
`x-error-codes` and `x-close-codes` list what can go wrong and what to do then.
"""

_SECURITY: Json = {
    "bearerHeader": {
        "type": "http",
        "scheme": "bearer",
        "description": "`Authorization: Bearer T` in the handshake.",
    },
    "bearerSubprotocol": {
        "type": "httpApiKey",
        "in": "header",
        "name": "Sec-WebSocket-Protocol",
        "description": (
            f"For browsers: the subprotocols `{SUBPROTOCOL}` and `bearer.T`. The"
            f" server selects `{SUBPROTOCOL}` and never echoes T."
        ),
    },
    "helloToken": {
        "type": "apiKey",
        "in": "user",
        "description": "`token` in `hello`, the first frame.",
    },
}


def asyncapi() -> Json:
    """Returns the document, from the server's side: it receives what clients send."""
    frames = [
        *get_args(ClientFrame),
        *get_args(LogEvent),
        *get_args(ControlFrame),
    ]
    return {
        "asyncapi": "3.0.0",
        "id": f"urn:wsserver:v{VERSION}",
        "info": {
            "title": "wsserver",
            "version": str(VERSION),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:8765",
                "protocol": "ws",
                "description": "Where `wsserver serve` listens unless told otherwise.",
                "security": [
                    {"$ref": f"#/components/securitySchemes/{name}"}
                    for name in _SECURITY
                ],
            }
        },
        "channels": {"chat": _channel(frames)},
        "operations": _operations(),
        "components": {
            "messages": {one.__name__: _message(one) for one in frames},
            "schemas": _relocated(definitions()),
            "securitySchemes": _SECURITY,
        },
        "x-error-codes": [_members(one) for one in ERRORS.values()],
        "x-close-codes": [
            {
                "code": code.value,
                "name": code.name.lower(),
                "advice": advice(code),
                "meaning": one.meaning,
                "remedy": one.remedy,
            }
            for code, one in CLOSES.items()
        ],
    }


def _channel(frames: list[type[Struct]]) -> Json:
    return {
        "address": "/v1/chat",
        "title": "Chat",
        "description": "The first frame is `hello`; the server answers `welcome`.",
        "messages": {
            one.__name__: {"$ref": f"#/components/messages/{one.__name__}"}
            for one in frames
        },
        "bindings": {
            "ws": {
                "method": "GET",
                "headers": {
                    "type": "object",
                    "properties": {
                        "Sec-WebSocket-Protocol": {
                            "type": "string",
                            "description": f"Has to offer `{SUBPROTOCOL}`.",
                        },
                        "Origin": {
                            "type": "string",
                            "description": "Where sent: same origin, or allow-listed.",
                        },
                    },
                },
                "bindingVersion": "0.1.0",
            }
        },
    }


def _operations() -> Json:
    commands = [one for one in get_args(ClientFrame) if issubclass(one, Command)]
    others = [one for one in get_args(ClientFrame) if not issubclass(one, Command)]
    return {
        "receiveCommand": {
            **_operation("receive", "Commands; each gets exactly one reply.", commands),
            "reply": {"channel": {"$ref": _CHANNEL}, "messages": _refs([Reply])},
        },
        "receiveFrame": _operation(
            "receive", "Other frames of the client; they get no `reply`.", others
        ),
        "sendEvent": _operation(
            "send", "Numbered events of the open conversations.", get_args(LogEvent)
        ),
        "sendControl": _operation(
            "send", "Frames about the connection.", get_args(ControlFrame)
        ),
    }


def _operation(action: str, summary: str, frames: Any) -> Json:
    return {
        "action": action,
        "channel": {"$ref": _CHANNEL},
        "summary": summary,
        "messages": _refs(frames),
    }


def _refs(frames: Any) -> list[Json]:
    return [{"$ref": f"{_CHANNEL}/messages/{one.__name__}"} for one in frames]


def _message(frame: type[Struct]) -> Json:
    summary, _, description = summary_of(frame).partition("\n\n")
    message = {
        "name": str(frame.__struct_config__.tag),
        "title": frame.__name__,
        "summary": summary,
        "contentType": "application/json",
        "payload": {"$ref": f"#/components/schemas/{frame.__name__}"},
    }
    return message | ({"description": description} if description else {})


def _members(struct: Struct) -> Json:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _relocated(schema: Any) -> Any:
    """Points the references into `components`."""
    if isinstance(schema, dict):
        return {
            key: one.replace("#/$defs/", "#/components/schemas/")
            if key == "$ref"
            else _relocated(one)
            for key, one in cast("Json", schema).items()
        }
    if isinstance(schema, list):
        return [_relocated(one) for one in cast("list[Any]", schema)]
    return schema
