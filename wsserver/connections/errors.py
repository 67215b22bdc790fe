"""The one ladder from exceptions to what clients are told."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from protocol.codec import encode
from protocol.commands import ClientFrame, Command
from protocol.content import ErrorBody
from protocol.control import ErrorFrame, Reply
from protocol.frame_error import FrameError, body_of
from wsserver.auth.principal import ForbiddenError, UnauthorizedError
from wsserver.log.store import StoreError
from wsserver.turns.errors import CommandError

log = structlog.get_logger(__name__)


def error_body(error: Exception) -> ErrorBody:
    """Returns what the client is told; the last rung reveals nothing."""
    match error:
        case FrameError():
            return error.body()
        case CommandError():
            return error.body
        case StoreError():
            return body_of(
                "store_unavailable",
                "The log can't be reached at the moment; send again later under the"
                " same id.",
            )
        case ForbiddenError():
            return body_of("forbidden", "These credentials do not allow this.")
        case UnauthorizedError():
            return body_of(
                "unauthorized", "The credentials are missing, wrong or expired."
            )
        case _:
            log_unforeseen(error)
            return body_of(
                "internal",
                "The server failed in a way it did not foresee; send again later"
                " under the same id.",
            )


def log_unforeseen(error: BaseException) -> None:
    """Logs where something failed, without what was said: it may be a user's."""
    log.error("unforeseen", error=type(error).__name__, at=_place(error))


def command_id(frame: ClientFrame) -> str | None:
    """Returns the id that a reply would name; None for a frame that gets none."""
    return frame.id if isinstance(frame, Command) else None


def error_frame(body: ErrorBody, re: str | None, *, gone: str | None = None) -> bytes:
    """Returns the reply to the command `re`, else an `error` frame.

    Args:
        body: What went wrong.
        re: The id of the command; None for a fault that belongs to none.
        gone: The conversation that was deleted, if that is the fault.
    """
    if re is not None:
        return encode(Reply(re=re, ok=False, error=body))
    return encode(
        ErrorFrame(
            code=body.code,
            message=body.message,
            retryable=body.retryable,
            retry_after_ms=body.retry_after_ms,
            param=body.param,
            gone=gone,
        )
    )


class Answering:
    """Answers a command with the exception that its handling raised.

    The one boundary of this room: nothing that a frame causes ends a connection.
    Cancellation passes through.
    """

    def __init__(self, answer: Callable[[ErrorBody, str | None], None], re: str | None):
        """Takes the command's id, which is None where there is no reply to give."""
        self._answer = answer
        self._re = re

    def __enter__(self) -> Self:
        """Begins to handle the frame."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Ends handling it; returns whether an exception was answered."""
        if not isinstance(error, Exception):
            return False
        self._answer(error_body(error), self._re)
        return True


async def fail(error: BaseException) -> None:
    """Raises an error in a task, when it came up where nobody owns it."""
    raise error


def _place(error: BaseException) -> list[str]:
    frames: list[str] = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{code.co_filename}:{traceback.tb_lineno} {code.co_qualname}")
        traceback = traceback.tb_next
    return frames
