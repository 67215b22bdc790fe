"""Rules of the wire between members of one command, beyond their types.

Whatever depends on the state of a conversation is not here but with the server.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import orjson
from msgspec import UNSET

from protocol.commands import (
    ClientFrame,
    Configure,
    Interrupt,
    Open,
    Ping,
    Send,
    ToolResult,
)
from protocol.content import Config, NamedTool
from protocol.frame_error import FrameError

MAX_PING_BYTES = 131_072
"""The longest `t` of a ping: it comes back whole."""


def check(frame: ClientFrame) -> None:
    """Raises `FrameError` (`bad_frame`) where a command breaks such a rule."""
    rule = _RULES.get(type(frame))
    if rule is not None:
        rule(frame)


def _send(frame: Send) -> None:
    _numbers(frame.metadata, "$.metadata", frame.id)


def _ping(frame: Ping) -> None:
    _numbers(frame.t, "$.t", None)
    size = 0 if frame.t is UNSET else len(orjson.dumps(frame.t))
    if size > MAX_PING_BYTES:
        raise FrameError(
            "bad_frame",
            f"`t` takes {size} bytes; {MAX_PING_BYTES} are allowed.",
            "$.t",
        )


def _tool_result(frame: ToolResult) -> None:
    if frame.error is None:
        if frame.output is UNSET:
            raise FrameError(
                "bad_frame",
                "`output` is missing; give what the tool gave, or an `error`.",
                "$.output",
                frame.id,
            )
        _numbers(frame.output, "$.output", frame.id)
    elif frame.output is not UNSET:
        raise FrameError(
            "bad_frame",
            "`error` stands beside `output`; give one of the two.",
            "$.error",
            frame.id,
        )


def _interrupt(frame: Interrupt) -> None:
    if frame.turn is not None and frame.send is not None:
        raise FrameError(
            "bad_frame",
            "`send` stands beside `turn`; give one of the two, or neither for the"
            " turn that runs.",
            "$.send",
            frame.id,
        )
    if frame.keep == "seen" and frame.seen_seq is None:
        raise FrameError(
            "bad_frame",
            "`seen_seq` is missing; `keep` `seen` needs the last number that the"
            " user saw.",
            "$.seen_seq",
            frame.id,
        )


def _config(frame: Open | Configure) -> None:
    config, re = frame.config, frame.id
    if config is None:
        return
    for path, value in _free_json(config):
        _numbers(value, path, re)
    if not isinstance(config.tools, list):
        return
    names: set[str] = set()
    for index, tool in enumerate(config.tools):
        if tool.name in names:
            raise FrameError(
                "bad_frame",
                f"Two tools have the name `{tool.name}`; give each its own.",
                f"$.config.tools[{index}].name",
                re,
            )
        names.add(tool.name)
    choice = config.tool_choice
    if isinstance(choice, NamedTool) and choice.name not in names:
        raise FrameError(
            "bad_frame",
            f"`tool_choice` names `{choice.name}`, which is not among `tools`.",
            "$.config.tool_choice.name",
            re,
        )


def _free_json(config: Config) -> Iterator[tuple[str, Any]]:
    yield "$.config.params", config.params
    yield "$.config.response_schema", config.response_schema
    for index, tool in enumerate(config.tools or ()):
        yield f"$.config.tools[{index}].parameters", tool.parameters


def _numbers(value: Any, path: str, re: str | None) -> None:
    """Refuses integers beyond 64 bits, which many JSON libraries can't carry."""
    if value is UNSET or value is None or isinstance(value, str):
        return
    try:
        orjson.dumps(value)
    except TypeError:
        raise FrameError(
            "bad_frame",
            "An integer here is beyond 64 bits; send a smaller one, or send it as a string.",
            _too_big(value, path),
            re,
        ) from None


def _too_big(value: Any, path: str) -> str | None:
    """Returns the path of the first integer in `value` that is beyond 64 bits."""
    members: Iterable[tuple[str, Any]]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        members = ((f"{path}{member_step(key)}", one) for key, one in pairs)
    elif isinstance(value, list):
        elements = enumerate(cast("list[Any]", value))
        members = ((f"{path}[{index}]", one) for index, one in elements)
    else:
        small = not isinstance(value, int) or -(2**63) <= value < 2**64
        return None if small else path
    return next((at for path, one in members if (at := _too_big(one, path))), None)


def member_step(key: str) -> str:
    """Returns what a JSON path has behind an object for one of its members."""
    return f".{key}" if key.isidentifier() else f"[{orjson.dumps(key).decode()}]"


_RULES: dict[type[ClientFrame], Callable[[Any], None]] = {
    Send: _send,
    ToolResult: _tool_result,
    Interrupt: _interrupt,
    Open: _config,
    Configure: _config,
    Ping: _ping,
}
