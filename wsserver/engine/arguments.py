"""Whether a call that a model made can be run, and if not, what it is told."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from protocol.content import Tool
from protocol.nesting import MAX_DEPTH
from wsserver.engine.model import Call
from wsserver.engine.schemas import misfit

MOST_DEPTH = MAX_DEPTH - 1
"""How deep lists and objects may stand in each other: the frame is a level itself."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def fault(call: Call, tool: Tool | None, max_bytes: int) -> str | None:
    """Says, for the model, why a call can't be run; None when it can.

    Args:
        call: What the model made.
        tool: The tool of that name; None when the model was told of no such tool.
        max_bytes: How long the arguments may be.
    """
    if not call.name or tool is None:
        nameless = "The call names no tool; it was not run."
        return f"There is no tool {call.name!r}." if call.name else nameless
    too_long = f"The arguments are longer than {max_bytes} bytes; the tool was not run."
    if len(call.arguments.encode()) > max_bytes:
        return too_long
    value = _read(call)
    if value is UNSET:
        return "The arguments are not valid JSON; the tool was not run."
    if len(_encode(value)) > max_bytes:  # as a fork writes them: `1e9` takes 12 bytes
        return too_long
    wrong = None if tool.parameters is None else misfit(tool.parameters, value)
    if wrong is not None:
        return f"The arguments do not fit the tool's schema: {wrong}"
    return None


def _read(call: Call) -> Any | UnsetType:
    """Returns the arguments; UNSET when not every client could read them."""
    if not call.valid:
        return UNSET
    try:
        value = _decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return UNSET
    return UNSET if deeper_than(value, MOST_DEPTH) else value


def deeper_than(value: Any, depth: int) -> bool:
    """Whether lists and objects stand more than `depth` deep in each other."""
    level = [value]
    for _ in range(depth):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(inner, (dict, list)) for inner in level)


def _inside(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())  # pyright: ignore[reportUnknownArgumentType]
        case list():
            return value  # pyright: ignore[reportUnknownVariableType]
        case _:
            return []
