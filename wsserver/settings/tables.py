"""What can be set of each model, each tool and each MCP server, in tables of the file."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from wsserver.settings.value_types import Bound, Count, Seconds, Text


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the table `[models.NAME]`: where the model NAME is to be had.

    Attributes:
        base_url: An OpenAI-compatible API, such as `http://localhost:8000/v1`.
        model: The name it has there; None for the same.
        api_key_env: The variable that holds the API key; None for no key.
        headers: A table: what each request has besides, as gateways ask for it.
        headers_env: A table: the same, each with the variable that holds its value.
        params: A table: request members such as `max_tokens`; those of a conversation
            go before them.
        params_allowed: A list: which request members conversations may set; `*` stands
            for any. None for the setting of that name.
        params_max: A table: how large some of them may be, whoever sets them, such as
            `max_tokens`. None for the setting of that name.
        context_tokens: The model's window; None for the setting of that name.
        first_token_timeout_seconds: From a model call to its first token; None for
            `upstream_first_token_timeout_seconds`.
        fallback: Names of models that are asked in its place, in order, where it
            gives no answer.
    """

    base_url: Text
    model: Text | None = None
    api_key_env: Text | None = None
    headers: dict[Text, Text] = {}
    headers_env: dict[Text, Text] = {}
    params: dict[Text, Any] = {}
    params_allowed: tuple[Text, ...] | None = None
    params_max: dict[Text, Bound] | None = None
    context_tokens: Count | None = None
    first_token_timeout_seconds: Seconds | None = None
    fallback: tuple[Text, ...] = ()


class ToolEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the table `[tools.NAME]`: a Python callable that the server runs.

    Attributes:
        call: Which one, as `package.module:function`.
        description: What models are told of it; None for its docstring.
        timeout_seconds: For one call; None for `tool_timeout_seconds`.
    """

    call: Text
    description: Text | None = None
    timeout_seconds: Seconds | None = None


class McpEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the table `[mcp.NAME]`: an MCP server whose tools may be used.

    Attributes:
        command: A list: the program to start, and its arguments; or else
        url: where the server is (streamable HTTP).
        env: A table of further variables for the program, which inherits few.
        pass_env: A list of this server's own variables that it is given too.
        folder: The program's working folder; None for this server's.
        token_env: The variable that holds the URL's bearer token; None for no token.
        prefix: What stands before the names of its tools; None for `NAME_`.
        tools: A list: which of its tools to take; `*` stands for anything.
        timeout_seconds: For one call; None for `tool_timeout_seconds`.
    """

    command: tuple[Text, ...] = ()
    url: Annotated[str, Meta(pattern=r"^https?://")] | None = None
    env: dict[str, str] = {}
    pass_env: tuple[Text, ...] = ()
    folder: Text | None = None
    token_env: Text | None = None
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{0,40}$")] | None = None
    tools: tuple[Text, ...] = ("*",)
    timeout_seconds: Seconds | None = None
