"""The plain shape of a chat completion chunk, decoded in one step.

Whatever does not fit, is an error or says nothing in these members is refused or
left for `lenient`, which reads every shape. Members typed None are there to be
refused when they hold anything.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct


class FunctionDelta(Struct, gc=False):
    """A piece of a call's name or arguments."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, gc=False):
    """A piece of one tool call."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    name: None = None
    arguments: None = None


class Delta(Struct, gc=False):
    """What one chunk adds to the answer."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: None = None
    reasoning_details: None = None


class Choice(Struct, gc=False):
    """One of the answers that a request may ask for."""

    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    message: None = None
    text: None = None
    error: None = None


class BaseResponse(Struct, gc=False):
    """How it went, where nothing went wrong (MiniMax)."""

    status_code: Literal[0]


class Chunk(Struct, gc=False):
    """One event of the stream."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: None = None
    error_message: None = None
    error_type: None = None
    error_code: Literal[0] | None = None
    errors: None = None
    header: None = None
    base_resp: BaseResponse | None = None
    x_groq: None = None


CHUNK: Final = msgspec.json.Decoder(Chunk)
