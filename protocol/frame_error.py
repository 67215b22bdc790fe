"""The one exception of the codec, shaped like the error that goes on the wire."""

from protocol.codes import ERRORS
from protocol.content import ErrorBody

PATH_CHARACTERS = 200
"""A path may hold names that a client made up; a longer one is cut."""


def shortened(path: str) -> str:
    """Returns a path, or as much of it as an error repeats."""
    return path if len(path) <= PATH_CHARACTERS else f"{path[: PATH_CHARACTERS - 1]}…"


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
        return ErrorBody(
            code=self.code,
            message=self.message,
            retryable=ERRORS[self.code].retryable,
            param=self.param,
        )
