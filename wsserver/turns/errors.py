"""The one error a command can be refused with."""

from protocol.content import ErrorBody
from protocol.frame_error import body_of


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
    """Returns the error that refuses a command, with `body_of` the same arguments."""
    return CommandError(
        body_of(code, message, param=param, retry_after_ms=retry_after_ms)
    )


def unknown_conversation(
    so: str = "open without a cursor to begin one",
) -> CommandError:
    """Returns the refusal of what concerns a conversation that is not there.

    Args:
        so: What to do, or why it can't be done; in the middle of a sentence.
    """
    return refusal(
        "conversation_not_found",
        f"There is no such conversation; {so}.",
        param="$.conversation",
    )


def id_in_use(id_: str) -> CommandError:
    """Returns the refusal of a command whose id another one has."""
    return refusal(
        "idempotency_conflict",
        f"The id {id_!r} was used for another command of this conversation; give each"
        " command an id of its own.",
        param="$.id",
    )
