"""What of a frame may be recorded.

Credentials never. What people, models and tools say only on request; otherwise its
length in UTF-8 stands in its place, as `«17»`. The rule is a list of what may stay, so that a
member that nobody thought of is left out. What comes out is still a valid frame
where the frame was one: shapes, numbers, ids and times stay.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
import orjson

Frame = dict[str, Any]

_decode = msgspec.json.Decoder(Frame).decode
_WORD = re.compile(r"[!-~]{1,256}")
_MARK = re.compile(r"«(\d+)»")
_DEPTH = 8

# Strings that stay where they are single words: ids, enumerations, times, names.
_WORDS = frozenset({
    "type", "id", "re", "conversation", "connection", "epoch", "call", "new",
    "upstream_id", "request_id", "send",
    "outcome", "reason", "code", "status", "finish_reason", "phase", "role", "keep",
    "policy", "on_disconnect", "view", "tool_choice", "by", "detail",
    "at", "deadline_at", "server_time", "name", "version", "model", "models",
    "features", "handles", "include", "last_ids",
})  # fmt: skip

# Members whose numbers stay, and in whose objects the same rules hold.
_KNOWN = _WORDS | frozenset({
    "protocol", "client", "server", "limits", "heartbeat_ms", "after", "config",
    "window_bytes", "max_delay_ms", "content", "seen_seq", "turn", "error", "message",
    "through", "seq", "first", "ok", "duplicate", "head", "oldest", "keep_through",
    "retryable", "retry_after_ms", "text", "instructions", "description", "tools",
    "detach", "grace_s", "timeout_s", "image_url", "param", "steers", "batch", "index",
    "invalid", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens",
    "estimated", "model_calls", "bytes", "timing", "queue_ms", "upstream_ttft_ms",
    "ttft_ms", "tpot_ms", "tokens_per_s", "tool_ms", "total_ms", "stop_ms", "t",
    "elapsed_ms", "deadline_ms", "redelivered", "reconnect_after_ms", "in_ms",
    "frame_bytes", "conversations", "active_turns", "queued", "pending_tools",
    "tool_output_bytes", "idempotency_s", "depth", "turn_bytes", "tool_rounds",
    "frames_per_second", "frames_burst", "principal_frames_per_second",
    "principal_connections", "principal_conversations", "principal_stored_conversations",
    "address_connections",
})  # fmt: skip

SECRET = "«secret»"  # noqa: S105 - what stands in place of one


def recorded(data: str | bytes, *, content: bool) -> Frame | None:
    """Returns what may be recorded of a frame; None if it is no JSON object.

    Args:
        data: The frame as it is on the wire.
        content: Whether texts were asked for.
    """
    frame = members(data)
    if frame is None:
        return None
    secret = "token" in frame
    # Whoever says hello may have put the token anywhere.
    if not content or frame.get("type") in ("hello", "refresh"):
        frame = _object(frame, _DEPTH)
    if secret:
        frame["token"] = SECRET
    return frame


def members(data: str | bytes) -> Frame | None:
    """Returns a frame's members; None if it is no JSON object."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def mark(length: int) -> str:
    """Returns what stands in the place of so many bytes."""
    return f"«{length}»"


def length(marked: str) -> int:
    """Returns how many bytes a text had, by what stands in its place."""
    found = _MARK.fullmatch(marked)
    return int(found[1]) if found else len(marked.encode())


def _object(members: Frame, depth: int) -> Frame:
    return {
        name: _FREE[name](value) if name in _FREE else _value(name, value, depth - 1)
        for name, value in members.items()
        if name in _KNOWN or name in _FREE
    }


def _value(name: str, value: Any, depth: int) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            stays = name in _WORDS and _WORD.fullmatch(value)
            return value if stays else _text(value)
        case list() if depth > 0:
            entries = cast("list[Any]", value)
            return [_value(name, each, depth - 1) for each in entries]
        case dict() if depth > 0:
            return _object(cast("Frame", value), depth)
        case _:
            return _free(value)


def _text(value: str) -> str:
    return mark(len(value.encode())) if value else ""


def _free(value: Any) -> str:
    """Free JSON: the length of what was said, or of how it is written."""
    if isinstance(value, str):
        return _text(value)
    try:
        return mark(len(orjson.dumps(value)))
    except TypeError:  # deeper than it writes; it reads more
        return mark(0)


def _heads(value: Any) -> Any:
    if not isinstance(value, dict):
        return {}
    return {
        name: head
        for name, head in cast("Frame", value).items()
        if _WORD.fullmatch(name) and isinstance(head, int)
    }


# A proof of a short text tells the text; an object stays one, as the protocol has it.
_FREE: dict[str, Callable[[Any], Any]] = {
    "arguments": _free,
    "output": _free,
    "metadata": lambda value: None if value is None else {},
    "params": lambda value: None if value is None else {},
    "parameters": lambda value: None if value is None else {},
    "url": lambda value: f"data:,{_free(value)}",
    "crc32": lambda _: 0,
    "heads": _heads,
}
