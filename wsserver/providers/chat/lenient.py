"""Reads a chunk or a body of any shape that chat upstreams were seen to send.

Pure: a parsed JSON value in, a `Reading` out. The plain shape never comes here
(`chunks`); `decoder` applies both in the same way. Null, absent and empty mean
the same throughout.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from wsserver.engine.model import Failure, Reasoning, Refusal, Text, Usage
from wsserver.providers.chat.channel import Kind
from wsserver.providers.chat.usage import read_usage
from wsserver.providers.exact_json import is_array, is_object, write_json
from wsserver.providers.faults.failures import failure_from_payload
from wsserver.providers.faults.reports import reports_error, says_fine

Piece = tuple[Kind, str]
Label = int | str

_FOREIGN_EVENTS: Final = ("response.", "message_", "content_block_")

# What a failure says when the upstream gave no reason; a later one is better.
NO_REASON: Final = "The upstream ended the answer with an error."


class CallPiece(Struct, frozen=True, kw_only=True):
    """A piece of one tool call, any member empty where nothing is said.

    Attributes:
        label: The upstream's index of the call, or None.
        id: The upstream's id.
        name: The tool's name or a part of it.
        arguments: A part of the arguments' JSON text.
        own: Whether it must be another call than the piece before it.
    """

    label: Label | None
    id: str
    name: str
    arguments: str
    own: bool = False


class Said(Struct, frozen=True, kw_only=True):
    """What a delta or a message says.

    Attributes:
        pieces: Texts in order, each with its channel.
        calls: Pieces of tool calls in order.
    """

    pieces: Sequence[Piece]
    calls: Sequence[CallPiece]


class Reading(Struct, kw_only=True):
    """What one event or body says.

    Attributes:
        is_chat: Whether it is a chat completion or a chunk of one at all.
        is_foreign: Whether it is an answer in another API's format.
        deltas: What is added to the answer.
        snapshots: The answer as a whole so far.
        answered: Whether it holds anything of choice 0.
        finish_reason: In the upstream's own word, or "".
        usage: Token counts, if any.
        failure: The fault that it reports, if any.
        complaint: What it may report, though not as an error: one if the answer does
            not say that it is whole.
    """

    is_chat: bool = False
    is_foreign: bool = False
    deltas: list[Said] = field(default_factory=list[Said])
    snapshots: list[Said] = field(default_factory=list[Said])
    answered: bool = False
    finish_reason: str = ""
    usage: Usage | None = None
    failure: Failure | None = None
    complaint: Failure | None = None


def read_payload(payload: object, *, is_error: bool = False) -> Reading:
    """Returns what `payload` says.

    Args:
        payload: One JSON value as `exact_json.read_json` returns it.
        is_error: Whether it came under the event name `error`.

    Raises:
        ValueError: Something in it is nested too deeply.
    """
    reading = Reading()
    # Some put an error, or all that others stream, into a list.
    for members in payload if is_array(payload) else [payload]:
        if is_object(members):
            _read_members(members, reading)
    if is_error and (reading.failure is None):
        reading.failure = failure_from_payload(payload, NO_REASON)
    return reading


def _read_members(members: Mapping[str, Any], reading: Reading) -> None:
    reading.is_chat |= "choices" in members
    reading.is_foreign |= _is_foreign(members)
    for choice in _own_choices(members.get("choices")):
        _read_choice(choice, reading)
    groq = members.get("x_groq")
    for source in (groq if is_object(groq) else {}, members):
        reading.usage = read_usage(source.get("usage")) or reading.usage
        if reports_error(source):
            reading.failure = failure_from_payload(source, NO_REASON)
    if not (reading.answered or reading.is_foreign or reading.failure):
        complaint = failure_from_payload(members, "")
        if complaint.message and not says_fine(members):
            reading.complaint = complaint


def _is_foreign(members: Mapping[str, Any]) -> bool:
    """Tells the Responses and the Messages API by the names of their events."""
    kind = members.get("type")
    return isinstance(kind, str) and kind.startswith(_FOREIGN_EVENTS)


def _own_choices(choices: object) -> Iterator[Mapping[str, Any]]:
    """Yields what belongs to choice 0; a choice without index has its position."""
    if not is_array(choices):
        return
    for position, choice in enumerate(choices):
        if is_object(choice):
            label = _label(choice.get("index"))
            if (position if label is None else label) == 0:
                yield choice


def _read_choice(choice: Mapping[str, Any], reading: Reading) -> None:
    reading.answered = True
    delta, message = choice.get("delta"), choice.get("message")
    if is_object(delta):
        reading.deltas.append(_read_said(delta))
    if is_object(message):
        reading.snapshots.append(_read_said(message))
    if choice.get("text") and not delta and not message:
        reading.is_foreign = True
    reading.usage = read_usage(choice.get("usage")) or reading.usage
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        reading.finish_reason = reason
    if choice.get("error"):
        reading.failure = failure_from_payload(choice, NO_REASON)


def _read_said(members: Mapping[str, Any]) -> Said:
    names = ("reasoning_content", "reasoning", "thinking")
    thoughts = dict.fromkeys(_flat(members.get(name)) for name in names)
    if not any(thoughts):  # Those who send the details mostly say it in both.
        thoughts = [_flat(members.get("reasoning_details"))]
    pieces: list[Piece] = [(Reasoning, text) for text in thoughts if text]
    pieces += _content_pieces(members.get("content"))
    refusal = _flat(members.get("refusal"))
    if refusal:
        pieces.append((Refusal, refusal))
    return Said(pieces=pieces, calls=list(_call_pieces(members)))


def _content_pieces(content: object) -> Iterator[Piece]:
    """Yields the texts of content that is a string, a typed part or a list of them."""
    for part in content if is_array(content) else [content]:
        kind = (part.get("type") if is_object(part) else None) or "text"
        channel = _CHANNELS.get(kind) if isinstance(kind, str) else None
        if channel is not None and (text := _flat(part)):
            yield channel, text


_CHANNELS: Final[Mapping[Any, Kind]] = {
    "text": Text,
    "output_text": Text,
    "text_delta": Text,
    "thinking": Reasoning,
    "thinking_delta": Reasoning,
    "reasoning": Reasoning,
    "reasoning_content": Reasoning,
    "reasoning_text": Reasoning,
    "refusal": Refusal,
}
_TEXT_MEMBERS: Final = (
    "text",
    "thinking",
    "reasoning",
    "summary",
    "refusal",
    "content",
    "value",
)


def _flat(value: object) -> str:
    """Returns the text of a string, of a part or of a list of them."""
    if isinstance(value, str):
        return value
    if is_array(value):
        return "".join(map(_flat, value))
    if is_object(value):
        return next((t for m in _TEXT_MEMBERS if (t := _flat(value.get(m)))), "")
    return ""


def _call_pieces(members: Mapping[str, Any]) -> Iterator[CallPiece]:
    calls = members.get("tool_calls")
    for position, entry in enumerate(calls if is_array(calls) else [calls]):
        if is_object(entry):
            yield _call_piece(entry, own=position > 0)
    legacy = members.get("function_call")
    if is_object(legacy) and not calls:  # Else it is one of them, for old clients.
        yield _call_piece({"index": "function_call", "function": legacy}, own=False)


def _call_piece(entry: Mapping[str, Any], *, own: bool) -> CallPiece:
    function = entry.get("function")
    source = function if is_object(function) else entry
    id_, name, arguments = entry.get("id"), source.get("name"), source.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else write_json(arguments)
    return CallPiece(
        label=_label(entry.get("index")),
        id=str(id_) if isinstance(id_, str | int) else "",
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        own=own,
    )


def _label(index: object) -> Label | None:
    """Returns an index as what tells calls and choices apart, 0, 0.0 and "0" alike."""
    if isinstance(index, float) and index.is_integer():
        return int(index)
    if isinstance(index, str) and index.isascii() and index.isdigit():
        return int(index) if len(index) < 10 else index
    if isinstance(index, str | int) and index != "" and not isinstance(index, bool):
        return index
    return None
