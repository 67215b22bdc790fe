"""Builds the body of a chat completion request. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from wsserver.engine.model import ModelRequest
from wsserver.providers.exact_json import is_array, is_object

OWN_MEMBERS: Final = ("model", "messages", "stream")
"""Said for each request by the provider, never by settings or the client."""

_encode = msgspec.json.Encoder().encode

_OPTIONS: Final = "stream_options"
_USAGE: Final = "include_usage"


def is_own(name: str) -> bool:
    """Whether an upstream may take a member for one of `OWN_MEMBERS`.

    Some do not mind its case, and of two that are alike heed the last.
    """
    return name.casefold() in OWN_MEMBERS


def request_body(
    request: ModelRequest, params: Mapping[str, Any], *, asks_usage: bool
) -> bytes:
    """Returns the body; for the arguments see `request_members`."""
    members = request_members(request, params, asks_usage=asks_usage)
    return _encode({"model": request.model, "stream": True, **members})


def request_members(
    request: ModelRequest, params: Mapping[str, Any], *, asks_usage: bool
) -> dict[str, Any]:
    """Returns all members of the body but `model` and `stream`.

    Args:
        request: What the model is asked.
        params: Members for all requests; those of the request go before them.
        asks_usage: Whether to ask for a last chunk with token counts.
    """
    members = {
        name: value
        for name, value in {**params, **request.params}.items()
        if not is_own(name)
    }
    members["messages"] = list(request.messages)
    if request.tools:
        members["tools"] = list(request.tools)
        if request.tool_choice is not None:
            members["tool_choice"] = request.tool_choice
    if request.response_schema is not None:
        members["response_format"] = _response_format(request.response_schema)
    options = _stream_options(members.get(_OPTIONS), asks_usage=asks_usage)
    members = _without(_OPTIONS, members)
    if options:
        members[_OPTIONS] = options
    return members


def _stream_options(given: object, *, asks_usage: bool) -> dict[str, Any]:
    """Returns the options; whether to ask for usage is not the client's to say."""
    options = _without(_USAGE, given) if is_object(given) else {}
    return {**options, _USAGE: True} if asks_usage else options


def _without(name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out a member, however it is spelt."""
    return {key: value for key, value in members.items() if key.casefold() != name}


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "schema": schema,
            "strict": _is_closed(schema),
        },
    }


def _is_closed(schema: object) -> bool:
    """Says whether every object in a schema has all its properties and no others.

    OpenAI's strict mode refuses any other schema; other upstreams don't look.
    """
    if is_array(schema):
        return all(map(_is_closed, schema))
    if not is_object(schema):
        return True
    properties = schema.get("properties")
    if is_object(properties) or schema.get("type") == "object":
        names = set(properties) if is_object(properties) else set[str]()
        required = schema.get("required")
        if schema.get("additionalProperties") is not False:
            return False
        if names != set(required if is_array(required) else ()):
            return False
    return all(map(_is_closed, schema.values()))
