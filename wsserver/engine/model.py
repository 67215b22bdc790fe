"""What a model is asked, and what comes out of it while it answers.

These values are the seam between providers (which produce model events) and
the turn machine (which consumes them). They know nothing of HTTP, of the log
or of the wire.

What no event of the log could hold is refused where the value is made. That is in the
provider, whose faults end one turn; further on nobody could end it any more.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, Literal, get_args

from msgspec import Struct

FinishReason = Literal[
    "stop", "length", "tool_calls", "content_filter", "error", "incomplete"
]
_REASONS = get_args(FinishReason)


MOST_TOKENS = 2**53 - 1
"""Above it a JSON number is not exact everywhere; no real count comes near."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One call of a model.

    Attributes:
        model: The name the upstream knows the model by.
        messages: Chat messages in the shape of the Chat Completions API.
        tools: Function tools in the same API's shape; empty for none.
        tool_choice: As in that API; None leaves it to the upstream.
        params: Further request members (`temperature`, `max_tokens`, ...).
        response_schema: A JSON Schema the answer has to fit, or None.
        request_id: Sent upstream as a header and written to every log line.
    """

    model: str
    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]] = ()
    tool_choice: Any = None
    params: dict[str, Any] = {}
    response_schema: dict[str, Any] | None = None
    request_id: str


class Text(Struct, frozen=True, gc=False):
    """A piece of the answer, never empty, never with a lone surrogate."""

    text: str


class Reasoning(Struct, frozen=True, gc=False):
    """A piece of the model's thinking; never part of the answer."""

    text: str


class Refusal(Struct, frozen=True, gc=False):
    """A piece of the model's own refusal channel."""

    text: str


class CallFragment(Struct, frozen=True, gc=False):
    """A piece of a tool call's arguments as they stream.

    Attributes:
        position: Which call of this model call it belongs to, from 0, in the
            order in which the calls were opened.
        name: The tool's name as far as it is known; may be empty.
        text: Argument text, may be empty when only the call was opened.
    """

    position: int
    name: str
    text: str


class Answering(Struct, frozen=True):
    """Which of several models it is that answers; before anything that it says.

    Attributes:
        model: Its name, as the client knows it.
        seconds: How long ago it was asked.
        code: The wire error code of why the one before it does not answer; None
            for the first.
    """

    model: str
    seconds: float
    code: str | None


class Call(Struct, frozen=True):
    """A tool call as the model finished it.

    Attributes:
        upstream_id: The id that the model's history keeps; never empty and
            different for all calls of one model call.
        name: The tool's name.
        arguments: The arguments' JSON text, exactly as it came ("{}" for none).
        valid: Whether `arguments` is one JSON value.

    Raises:
        ValueError: A text holds half of a surrogate pair.
    """

    upstream_id: str
    name: str
    arguments: str
    valid: bool

    def __post_init__(self) -> None:
        """Checks what was given."""
        _check_texts(self.upstream_id, self.name, self.arguments)


class Usage(Struct, frozen=True, kw_only=True):
    """Token counts as the upstream reported them.

    Raises:
        ValueError: One is no whole number from 0 to `MOST_TOKENS`.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    def __post_init__(self) -> None:
        """Checks what was given."""
        for name in self.__struct_fields__:
            count: object = getattr(self, name)
            if count is None:
                continue
            if not (type(count) is int and 0 <= count <= MOST_TOKENS):
                raise ValueError(f"{name} is no number of tokens")


class Failure(Struct, frozen=True, kw_only=True):
    """Why a model call failed.

    Attributes:
        code: A wire error code of a turn (`upstream_auth`, ...).
        message: The provider's own words where there are some.
        retryable: Whether the same request may succeed later.
        retry_after_seconds: The least time to wait before that, in seconds.
        upstream_code: The provider's own code, for the operator's log.
        retried: Whether the request was made again as often as it may be.

    Raises:
        ValueError: `message` holds half of a surrogate pair, or the wait is no time.
    """

    code: str
    message: str
    retryable: bool
    retry_after_seconds: float | None = None
    upstream_code: str | None = None
    retried: bool = False

    def __post_init__(self) -> None:
        """Checks what was given."""
        _check_texts(self.message)
        wait = self.retry_after_seconds
        if wait is not None and not 0 <= wait < inf:
            raise ValueError(f"retry_after_seconds is no time to wait: {wait}")


class Finished(Struct, frozen=True, kw_only=True):
    """The end of one model call; exactly one, and nothing after it.

    Attributes:
        reason: `incomplete` when the stream broke off without saying why,
            `error` when `failure` says why.
        upstream_reason: The reason in the upstream's own word, if it gave one.
        calls: The tool calls that were seen, whole or not, in opening order.
            They may be run only when `reason` is `tool_calls`.
        usage: The last usage that was seen.
        failure: Only with reason `error`.

    Raises:
        ValueError: `reason` is another one, or `upstream_reason` holds half of a
            surrogate pair.
    """

    reason: FinishReason
    upstream_reason: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        """Checks what was given."""
        if self.reason not in _REASONS:
            raise ValueError(f"{self.reason!r} is no reason; there are {_REASONS}")
        if self.upstream_reason is not None:
            _check_texts(self.upstream_reason)


ModelEvent = Text | Reasoning | Refusal | CallFragment | Answering | Finished


class UpstreamError(Exception):
    """A model call that failed before its stream began.

    Attributes:
        failure: What is told to the client and to the retry rule.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.code}: {failure.message}")
        self.failure = failure


def _check_texts(*texts: str) -> None:
    for text in texts:
        text.encode()  # raises for half of a surrogate pair, and nothing else
