"""What can go wrong, as exceptions: one class for each code that can get here.

This is the only place where codes become classes; `protocol.codes` says what
each means, and to who writes a client what to do. The other codes, and those that
this client does not know yet, raise the base class with that code.
"""

from typing import ClassVar

from protocol.client.events import ResetReason
from protocol.codes import CLOSE_ERRORS
from protocol.content import ErrorBody
from protocol.control import ErrorFrame
from protocol.events import DoneEvent, TurnErrorEvent


class ClientError(Exception):
    """The base of all errors that the client raises."""


class NotConnectedError(ClientError):
    """The first connection could not be made; the cause says why."""


class StoppedError(ClientError):
    """The block of `connect` was left, or the server ended the connection for good.

    Attributes:
        code: The close code; None where the block was left.
    """

    def __init__(self, code: int | None, reason: str) -> None:
        who = "the client stopped" if code is None else f"the server closed with {code}"
        super().__init__(f"{who}: {reason}")
        self.code = code


class ConversationResetError(ClientError):
    """The server's log is another than before: what was read so far is void.

    `chat.view` begins anew and shows what the server has.

    Attributes:
        reason: `expired`, `seq_ahead` or `epoch_changed`.
    """

    def __init__(self, reason: ResetReason) -> None:
        super().__init__(f"the conversation was reset ({reason}); read it again")
        self.reason = reason


class IncompleteAnswerError(ClientError):
    """The answer is not the whole answer.

    Attributes:
        text: What there is of it.
        done: How the turn ended: `done.status` and `done.reason`.
    """

    def __init__(self, text: str, done: DoneEvent) -> None:
        super().__init__(f"the answer is {done.status} ({done.reason})")
        self.text = text
        self.done = done


class CodedError(ClientError):
    """An error from the server's catalogue.

    A traceback also shows what to do about it, as a note.

    Attributes:
        code: As on the wire.
        message: For a person.
        retryable: Whether the same again may succeed.
        retry_after_seconds: The least wait before that; None for no hint.
        param: A JSON path to the member at fault; None where it is no single one.
        remedy: What an application can do; empty where nothing is known.
    """

    by_code: ClassVar[dict[str, type["CodedError"]]] = {}
    remedy: ClassVar[str] = ""

    def __init_subclass__(cls, *, code: str | None = None, remedy: str = "") -> None:
        super().__init_subclass__()
        cls.remedy = remedy
        if code is not None:
            CodedError.by_code[code] = cls

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool,
        retry_after_ms: int | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        if self.remedy:
            self.add_note(self.remedy)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_seconds = (
            None if retry_after_ms is None else retry_after_ms / 1000
        )
        self.param = param


class CommandError(CodedError):
    """The server refused a command."""


class TurnError(CodedError):
    """A turn failed: its `done` has the status `failed`."""


class BadFrameError(
    CommandError, code="bad_frame", remedy="Correct what `param` names."
):
    """A member is missing, of a wrong type, out of range, nested too deep or not for clients to set."""


class UnsupportedProtocolError(
    CommandError, code="unsupported_protocol", remedy="Update the older of the two."
):
    """The server does not speak that version."""


class UnauthorizedError(
    CommandError, code="unauthorized", remedy="Get new credentials."
):
    """The credentials are missing, wrong or expired."""


class ForbiddenError(
    CommandError, code="forbidden", remedy="Use credentials that may."
):
    """The principal may not do this."""


class ConversationNotFoundError(
    CommandError,
    code="conversation_not_found",
    remedy="Open it again, without `create=False`, to begin anew.",
):
    """No such conversation, or not yours."""


class BadModelError(
    CommandError, code="bad_model", remedy="Choose one of `client.welcome.models`."
):
    """No configured upstream knows the model."""


class BusyError(
    CommandError,
    code="busy",
    remedy="Wait for the turn to end, or choose another `policy`.",
):
    """A turn runs and the policy was `reject`."""


class QueueFullError(
    CommandError, code="queue_full", remedy="Wait for a turn to end, then send again."
):
    """Too many messages wait in this conversation."""


class TooLargeError(CommandError, TurnError, code="too_large", remedy="Send less."):
    """Something is larger than the limit that the message names."""


class TooManyConversationsError(
    CommandError,
    code="too_many_conversations",
    remedy="Close one, or delete one, as the message says.",
):
    """The connection, or the principal, has its limit of conversations open, or the principal its limit of those that are stored."""


class TooManyTurnsError(
    CommandError,
    code="too_many_turns",
    remedy="Wait for a turn to end, then send again.",
):
    """The principal has its limit of turns running."""


class StoreUnavailableError(
    CommandError, TurnError, code="store_unavailable", remedy="Send again later."
):
    """The log can't be written at the moment."""


class InternalError(
    CommandError,
    TurnError,
    code="internal",
    remedy="Send again later; tell the operator.",
):
    """The server failed in a way it did not foresee."""


class UpstreamAuthError(TurnError, code="upstream_auth", remedy="Tell the operator."):
    """The upstream refused the server's credentials."""


class UpstreamRateLimitedError(
    TurnError,
    code="upstream_rate_limited",
    remedy="Send again after `retry_after_seconds`.",
):
    """The upstream takes no more requests for now."""


class UpstreamUnavailableError(
    TurnError, code="upstream_unavailable", remedy="Send again later."
):
    """The upstream could not be reached or is overloaded."""


class UpstreamTimeoutError(
    TurnError, code="upstream_timeout", remedy="Send again later."
):
    """The upstream did not begin to answer in time."""


class UpstreamFailedError(
    TurnError,
    code="upstream_error",
    remedy="Read the message; the same is likely to fail again.",
):
    """The upstream refused the request or failed while answering."""


class ContextLengthError(
    TurnError,
    code="context_length",
    remedy="Fork at an earlier turn, or choose another model.",
):
    """The conversation is too long for the model."""


class ContentFilterError(
    TurnError, code="content_filter", remedy="Say it in other words."
):
    """The upstream's content filter refused the request."""


class SchemaMismatchError(
    TurnError, code="schema_mismatch", remedy="Send again, or loosen the schema."
):
    """The answer does not fit `response_schema`."""


class TooManyToolRoundsError(
    TurnError, code="too_many_tool_rounds", remedy="Ask for less at once."
):
    """The model asked for more rounds of tools than are allowed."""


class ResponseTooLargeError(
    TurnError, code="response_too_large", remedy="Ask for less at once."
):
    """The answer is larger than a turn may be."""


def command_error(body: ErrorBody | ErrorFrame) -> CommandError:
    """Makes the exception for a refused command."""
    kind = CodedError.by_code.get(body.code, CommandError)
    return (kind if issubclass(kind, CommandError) else CommandError)(
        body.code,
        body.message,
        retryable=body.retryable,
        retry_after_ms=body.retry_after_ms,
        param=body.param,
    )


def stop_error(code: int, said: ErrorFrame | None) -> ClientError:
    """Makes the exception for a connection that the server ended for good.

    Args:
        code: The close code.
        said: What it said last that belongs to no command; None for nothing.
    """
    name = CLOSE_ERRORS.get(code)
    if name is None:
        return StoppedError(code, said.message if said else "it did not say why")
    if said is not None and said.code == name:
        return command_error(said)
    message = f"the server closed with {code}"
    return command_error(ErrorBody(code=name, message=message, retryable=False))


def turn_error(event: TurnErrorEvent) -> TurnError:
    """Makes the exception for a failed turn."""
    kind = CodedError.by_code.get(event.code, TurnError)
    return (kind if issubclass(kind, TurnError) else TurnError)(
        event.code,
        event.message,
        retryable=event.retryable,
        retry_after_ms=event.retry_after_ms,
    )
