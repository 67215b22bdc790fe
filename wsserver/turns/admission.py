"""What a command has to fulfil before anything of it is applied."""

import msgspec

from protocol.commands import Send, ToolResult
from protocol.content import Config
from wsserver.turns.errors import refusal
from wsserver.turns.services import Services

_encode = msgspec.json.Encoder().encode


def check_open(services: Services) -> None:
    """Refuses what would change a log that can't be written.

    Raises:
        CommandError: `draining` or `store_unavailable`.
    """
    if services.draining:
        raise refusal(
            "draining",
            "The server is about to stop; reconnect and send this again.",
            retry_after_ms=1000,
        )
    if services.failing():
        raise refusal(
            "store_unavailable",
            "The log can't be written at the moment; send this again later.",
            retry_after_ms=1000,
        )


def check_config(config: Config, services: Services) -> None:
    """Refuses settings that no turn could run with.

    Raises:
        CommandError: `bad_model`, `bad_frame` or `too_large`.
    """
    if config.model and services.models.resolve(config.model) is None:
        known = ", ".join(list(services.models.names())[:12])
        raise refusal(
            "bad_model",
            f"No upstream knows the model {config.model!r}; there are: {known}.",
            param="$.config.model",
        )
    limit = services.limits.content_bytes
    size = len(_encode(config))
    if size > limit:
        raise refusal(
            "too_large",
            f"The settings take {size} bytes; {limit} are allowed.",
            param="$.config",
        )
    names = [tool.name for tool in config.tools or ()]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise refusal(
                "bad_frame",
                f"Two tools have the name {name!r}; give each its own.",
                param=f"$.config.tools[{index}].name",
            )


def check_send(command: Send, services: Services) -> None:
    """Refuses a message that is too long.

    Raises:
        CommandError: `too_large`.
    """
    limit = services.limits.content_bytes
    size = len(_encode(command.content)) + len(_encode(command.metadata))
    if size > limit:
        raise refusal(
            "too_large",
            f"Content and metadata take {size} bytes; {limit} are allowed.",
            param="$.content",
        )


def check_output(command: ToolResult, limit: int) -> None:
    """Refuses a tool's output that is too long; the call stays open.

    Raises:
        CommandError: `too_large`.
    """
    output = command.output if command.error is None else command.error.message
    size = len(_encode(output))
    if size > limit:
        raise refusal(
            "too_large",
            f"The output takes {size} bytes; {limit} are allowed. The call is"
            " still open: send a shorter output under a new id.",
            param="$.output",
        )
