"""Which MCP server, and how it is had."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from wsserver.engine.secrets import hide, telling_values, url_secrets


class McpSettings(Struct, frozen=True, kw_only=True):
    """One MCP server.

    Attributes:
        name: What it is called in settings, logs and messages.
        command: Starts it, to be spoken to over its standard streams.
        url: Where it is, where no command is given.
        environment: Further variables for the command; it inherits few.
        folder: The command's working folder; None for this process's.
        token: Sent to the URL as bearer credentials.
        prefix: Stands before the names of its tools.
        only: Which of its tools to take: its own names, in which `*` stands for
            anything.
        timeout_seconds: For one call; unset for the server's default.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    environment: Mapping[str, str] = {}
    folder: str | None = None
    token: str | None = None
    prefix: str = ""
    only: tuple[str, ...] = ("*",)
    timeout_seconds: float | UnsetType = UNSET

    def hide(self, text: str) -> str:
        """Takes out what the server was given for itself, should it quote that."""
        secrets = [*telling_values(self.environment), *url_secrets(self.url or "")]
        return hide(text, [self.token or "", *secrets])
