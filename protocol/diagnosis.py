"""Says what is wrong with a frame that did not decode, and what to do about it.

It runs for bad frames only, so it may read them again, and more than once.
"""

from collections.abc import Mapping, Sequence
from re import DOTALL, Match
from re import compile as compile_
from typing import Any, get_args

import msgspec
import orjson
from msgspec import Raw, Struct

from protocol.commands import Command
from protocol.expected import ANYTHING, Step, expected, kind_of
from protocol.frame_error import FrameError, shortened
from protocol.ids import Id
from protocol.nesting import MAX_DEPTH, deep_member, outer_texts

Frames = Mapping[str, type[Struct]]
"""Frames by their `type`."""

_ECHO = 64
"""How many characters of a value a message repeats."""

# What msgspec says: "Expected `str`, got `int` - at `$.id`".
_SAID = compile_(r"^(.*?)(?: - at `(?:key in )?\$(.*)`)?$", DOTALL)
_MISSING = compile_(r"^Object missing required field `(.+)`$")
_STEP = compile_(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")

_SURROGATE = compile_(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff]")


class _Head(Struct):
    type: Raw = Raw()
    id: Raw = Raw()


_head = msgspec.json.Decoder(_Head)
_Unreadable = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


def by_tag(union: Any) -> dict[str, type[Struct]]:
    """Returns the frames of a union by their `type`."""
    return {str(one.__struct_config__.tag): one for one in get_args(union)}


def read_id(text: str, frames: Frames) -> str | None:
    """Returns the id of the command in `text`; None where there is none to read.

    A frame that is known not to be a command has none, whatever it holds.
    """
    for attempt in (text, _mended(text)):
        try:
            return _id(_head.decode(attempt), frames)
        except RecursionError:
            return _outer_id(text, frames)
        except _Unreadable:
            continue
    return None


def diagnose(text: str, frames: Frames) -> FrameError:
    """Returns what is wrong with `text`, which is none of `frames`."""
    try:
        head = _head.decode(text)
    except RecursionError:
        return too_deep(text, frames, MAX_DEPTH)
    except msgspec.ValidationError:
        return _not_object(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _not_json(text, frames)
    re = _id(head, frames)
    kind = _decoded(head.type)
    if not isinstance(kind, str):
        wrong = f"must be a string; got {kind_of(kind)}" if head.type else "is missing"
        return FrameError("bad_frame", f"`type` {wrong}.", "$.type", re)
    if kind not in frames:
        known = ", ".join(f"`{one}`" for one in frames)
        return FrameError(
            "unknown_type", f"There is no {_echo(kind)}; use one of {known}.", re=re
        )
    return _misfit(text, frames[kind], re)


def too_deep(text: str, frames: Frames, limit: int) -> FrameError:
    """Returns what is said of a frame that is deeper than `limit`."""
    member = deep_member(text, limit)
    what = "The frame" if member is None else f"`{shortened(member)}`"
    return FrameError(
        "bad_frame",
        f"{what} holds lists and objects that stand more than {limit} deep in each"
        " other, the frame included; send it flatter, or as a string.",
        "$" if member is None else f"$.{member}",
        read_id(text, frames),
    )


def type_twice(re: str | None) -> FrameError:
    """Returns what is said of a frame with more than one `type`."""
    return FrameError("bad_frame", "`type` stands twice; give it once.", "$.type", re)


def _id(head: _Head, frames: Frames) -> str | None:
    frame = frames.get(str(_decoded(head.type)), Command)
    if not issubclass(frame, Command):
        return None
    try:
        return msgspec.json.decode(head.id, type=Id)
    except msgspec.DecodeError:
        return None


def _outer_id(text: str, frames: Frames) -> str | None:
    head = {
        name: Raw(msgspec.json.encode(value))
        for name, value in outer_texts(text).items()
    }
    return _id(_Head(**head), frames)


def _decoded(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _mended(text: str) -> str:
    return _SURROGATE.sub(r"\\ufffd", text)


def _not_object(text: str) -> FrameError:
    try:
        got = kind_of(orjson.loads(text))
    except orjson.JSONDecodeError:
        got = "something else"
    return FrameError("bad_json", f"A frame must be one JSON object; got {got}.")


def _not_json(text: str, frames: Frames) -> FrameError:
    try:
        _head.decode(_mended(text))
    except _Unreadable:
        pass
    else:
        return FrameError(
            "bad_json",
            "A string holds half of a surrogate pair; send whole characters.",
            re=read_id(text, frames),
        )
    if not text.strip():
        return FrameError("bad_json", "The frame is empty; send one JSON object.")
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return FrameError(
            "bad_json",
            f"The frame is not JSON: {error.msg} at character {error.pos}.",
        )
    return FrameError("bad_json", "The frame is not strict JSON.")


def _misfit(text: str, frame: type[Struct], re: str | None) -> FrameError:
    """Says which member of a frame does not fit, in the words of its type."""
    try:
        msgspec.json.decode(text, type=frame)
    except msgspec.ValidationError as error:
        said = _SAID.match(str(error))
    else:
        said = None
    if said is None or said[2] == ".type":
        return type_twice(re)
    what, path = said[1], said[2] or ""
    missing = _MISSING.match(what)
    if missing is not None:
        path += f".{missing[1]}"
    steps = [_step(match) for match in _STEP.finditer(path)]
    words = expected(frame, steps)
    if missing is not None:
        wrong = f"is missing; it must be {words}"
    elif words == ANYTHING:
        wrong = "holds a number too large to be read; send a smaller one, or send it as a string"
    else:
        wrong = f"must be {words}; got {_got(text, steps, words)}"
    path = path.replace("[...]", "[*]")
    return FrameError("bad_frame", f"`{shortened(path[1:])}` {wrong}.", f"${path}", re)


def _step(match: Match[str]) -> Step:
    name, index = match.groups()
    return int(index) if index is not None else name


def _got(text: str, steps: Sequence[Step], words: str) -> str:
    try:
        value = orjson.loads(text)
        for step in steps:
            value = value[step]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return "something else"
    if isinstance(value, str) and ("string" in words or "`" in words):
        return _echo(value)
    if type(value) in (int, float) and "number" in words:
        return str(value)[:_ECHO]
    return "an empty list" if value == [] else kind_of(value)


def _echo(value: str) -> str:
    return f"`{value}`" if len(value) <= _ECHO else f"one of {len(value)} characters"
