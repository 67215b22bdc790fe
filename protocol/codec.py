"""Frames to bytes and back: validated, strict JSON, one pass.

Decoding is one call of a decoder that is built when the module is loaded. Only
when that fails `protocol.diagnosis` looks at the frame again, to say what was
wrong. Rules between members stand in `protocol.rules`. No input, however bad,
raises anything but `FrameError`.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from protocol.commands import ClientFrame
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ControlFrame,
    Goaway,
    Heartbeat,
    Pong,
    Reply,
    ToolRequest,
    Waiting,
    Welcome,
)
from protocol.diagnosis import by_tag, diagnose, read_id, too_deep, type_twice
from protocol.events import LogEvent, SkipEvent
from protocol.frame_error import FrameError
from protocol.nesting import MAX_DEPTH, depth, type_stands_twice
from protocol.rules import check


class UnknownFrame(Struct, frozen=True, kw_only=True):
    """A frame from the server of a type that this client does not know.

    Clients ignore it; but where it has `conversation` and `seq` it is an event
    of a newer server, and its number is used up.

    Attributes:
        type: As on the wire.
        skip: What it means for the cursor; None for a control frame.
    """

    type: str
    skip: SkipEvent | None = None


ServerFrame = LogEvent | ControlFrame | UnknownFrame

# `error` is an event with `conversation` and a control frame without: a tag
# can't be in a union twice, so the rarer of the two is tried when this fails.
_Usual = (
    LogEvent | Welcome | Reply | Pong | CaughtUp | Waiting | ToolRequest | Goaway
    | AuthExpiring | Heartbeat
)  # fmt: skip


class _Loose(Struct):
    type: str
    conversation: Any = None
    seq: Any = None
    first: Any = None


_client = msgspec.json.Decoder(ClientFrame)
_server = msgspec.json.Decoder(_Usual)
_loose = msgspec.json.Decoder(_Loose)
_encoder = msgspec.json.Encoder()

_CLIENT_FRAMES = by_tag(ClientFrame)
_CONTROLS = by_tag(ControlFrame)
_SERVER_FRAMES = _CONTROLS | by_tag(LogEvent)

_Undecodable = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


def decode_command(
    data: str | bytes, *, max_bytes: int, max_depth: int = MAX_DEPTH
) -> ClientFrame:
    """Reads one frame from a client.

    Members that are not known are ignored; of a member that stands twice the
    last one counts, but `type` may stand only once. `open.after` may hold any JSON
    value: whether it is a cursor is for the server to say (`bad_cursor`). Integers in free JSON
    (`metadata`, `output`, ...) have to fit in 64 bits.

    Args:
        data: One text message of the WebSocket.
        max_bytes: The longest frame in UTF-8 (`limits.frame_bytes`).
        max_depth: How deep lists and objects may stand in each other.

    Raises:
        FrameError: `bad_json`, `bad_frame`, `unknown_type` or `too_large`.
    """
    text = data if isinstance(data, str) else _utf8(data)
    if len(text) * 4 > max_bytes and (size := _size(text)) > max_bytes:
        raise FrameError(
            "too_large",
            f"The frame has {size} bytes, the limit is {max_bytes}; send less.",
            re=read_id(text, _CLIENT_FRAMES),
        )
    try:
        frame = _client.decode(text)
    except _Undecodable:
        raise diagnose(text, _CLIENT_FRAMES) from None
    if len(text) > 2 * max_depth and depth(text, max_depth) > max_depth:
        raise too_deep(text, _CLIENT_FRAMES, max_depth)
    if type_stands_twice(text):
        raise type_twice(read_id(text, _CLIENT_FRAMES))
    check(frame)
    return frame


def decode_server_frame(data: str | bytes) -> ServerFrame:
    """Reads one frame from the server.

    An `error` with `conversation` is an event, one without is about the
    connection. Types that are not known come back as `UnknownFrame`.

    Raises:
        FrameError: `bad_json` or `bad_frame`: it is no frame of version 1.
    """
    text = data if isinstance(data, str) else _utf8(data)
    try:
        return _server.decode(text)
    except _Undecodable:
        return _unusual(text)


def encode(frame: Struct) -> bytes:
    """Writes a frame as strict JSON in UTF-8.

    NaN and infinities become null, as in JavaScript.

    Raises:
        FrameError: `bad_frame`: it holds what JSON has no form for, half of a
            surrogate pair, or more levels than can be written.
    """
    try:
        return _encoder.encode(frame)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        kind = type(frame).__struct_config__.tag
        raise FrameError(
            "bad_frame", f"The `{kind}` frame can't be written as JSON: {error}."
        ) from error


def _unusual(text: str) -> ServerFrame:
    try:
        loose = _loose.decode(text)
    except _Undecodable:
        raise diagnose(text, _SERVER_FRAMES) from None
    frames = _CONTROLS if loose.conversation is None else _SERVER_FRAMES
    frame = frames.get(loose.type) or _SERVER_FRAMES.get(loose.type)
    if frame is None:
        return UnknownFrame(type=loose.type, skip=_number_used(loose))
    try:
        return cast("ServerFrame", msgspec.json.decode(text, type=frame))
    except _Undecodable:
        raise diagnose(text, {loose.type: frame}) from None


def _number_used(loose: _Loose) -> SkipEvent | None:
    members = {
        "type": "skip",
        "conversation": loose.conversation,
        "seq": loose.seq,
        "first": loose.first,
    }
    try:
        return msgspec.convert(members, SkipEvent)
    except msgspec.ValidationError:
        return None


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FrameError(
            "bad_json",
            f"The frame is not UTF-8 from byte {error.start} on.",
            re=read_id(data.decode(errors="replace"), _CLIENT_FRAMES),
        ) from None


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text.encode(errors="surrogatepass"))
