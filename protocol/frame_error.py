"""What an error says on the wire, and the one exception of the codec."""

from protocol.codes import ERRORS
from protocol.content import ErrorBody

PATH_CHARACTERS = 200
"""A path may hold names that a client made up; a longer one is cut."""


def shortened(path: str) -> str:
    """Returns a path, or as much of it as an error repeats."""
    return path if len(path) <= PATH_CHARACTERS else f"{path[: PATH_CHARACTERS - 1]}…"


def body_of(
    code: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_ms: int | None = None,
) -> ErrorBody:
    """Returns what a client is told under a code of the catalogue.

    Args:
        code: Which one; it says whether sending the same again may succeed.
        message: Sentences: what was wrong and what to do.
        param: A JSON path to the member at fault; None where it is no single one's.
        retry_after_ms: The least wait before the next attempt; None for no advice.
    """
    return ErrorBody(
        code=code,
        message=message,
        retryable=ERRORS[code].retryable,
        retry_after_ms=retry_after_ms,
        param=None if param is None else shortened(param),
    )


class FrameError(ValueError):
    """A frame that can't be read, or a value that can't be written as one.

    Attributes:
        code: `bad_json`, `bad_frame`, `unknown_type` or `too_large`.
        message: For a person: what was wrong and what to do.
        param: A JSON path to the member at fault, such as `$.config.model`;
            None where the fault is no single member's.
        re: The id of the command, where it is one and its id could be read, so
            that the error can be the `reply` it waits for; else None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        param: str | None = None,
        re: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.param = None if param is None else shortened(param)
        self.re = re

    def body(self) -> ErrorBody:
        """Returns what a `reply` or an `error` frame says of it."""
        return body_of(self.code, self.message, param=self.param)
