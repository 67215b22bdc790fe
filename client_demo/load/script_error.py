"""Why a script ended before its end."""


class ScriptError(Exception):
    """The script of one conversation can't go on.

    Attributes:
        code: An error code of the server, or `connect_failed`, `wait_timeout`,
            `closed_CODE`.
        message: Of the server, or what was waited for; empty for none.
        retry_after_seconds: What the server asked to wait.
    """

    def __init__(
        self, code: str, message: str = "", *, retry_after_seconds: float = 0.0
    ) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds
