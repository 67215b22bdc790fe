"""Reads JSON that strict libraries refuse, without losing what it says.

The hot path reads with msgspec. What comes here is the rest: UTF-16 halves written
as escapes, bytes that are no UTF-8, NaN and Infinity, raw control characters,
integers of any length.
"""

import json  # noqa: TID251 - the one library that reads and keeps a lone half
from typing import Any, Final, TypeGuard

import orjson

# Above this `int` is slow, and from 4,300 digits on it refuses.
_MAX_INT_DIGITS: Final = 1000


def read_json(data: bytes) -> object:
    """Returns the one JSON value in `data`; strings may hold lone halves.

    Raises:
        ValueError: `data` is not one JSON value, or is nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False, parse_int=_int)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_first_json(text: str) -> object:
    """Returns the JSON object or array at the beginning of `text`.

    Raises:
        ValueError: There is none, or it is nested too deeply.
    """
    if not text.startswith(("{", "[")):
        raise ValueError("no object and no array")
    try:
        return json.JSONDecoder(strict=False, parse_int=_int).raw_decode(text)[0]
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encoding_of(data: bytes) -> str:
    """Returns in which form of Unicode JSON is written, by how it begins."""
    return json.detect_encoding(data)


def write_json(value: object) -> str:
    """Returns the JSON text of what `read_json` returned.

    Raises:
        ValueError: `value` is nested too deeply.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Says whether a value that was read is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Says whether a value that was read is an array."""
    return isinstance(value, list)


def is_json(text: str) -> bool:
    """Says whether `text` is one JSON value that a strict reader takes."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_INT_DIGITS else float(digits)
