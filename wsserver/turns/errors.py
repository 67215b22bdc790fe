"""The one error a command can be refused with."""

from protocol.codes import ERRORS
from protocol.content import ErrorBody


class CommandError(Exception):
    """A command was refused; nothing of it was applied.

    Attributes:
        body: What the client is told.
    """

    def __init__(self, body: ErrorBody) -> None:
        super().__init__(f"{body.code}: {body.message}")
        self.body = body


def refusal(
    code: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_ms: int | None = None,
) -> CommandError:
    """Makes the error for a code of the catalogue."""
    return CommandError(
        ErrorBody(
            code=code,
            message=message,
            retryable=ERRORS[code].retryable,
            retry_after_ms=retry_after_ms,
            param=param,
        )
    )
