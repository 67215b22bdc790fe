"""What can be tuned in a demo model, and how a model's name says it.

A name is `demo/NAME` or `demo/NAME:OPTION=VALUE,OPTION=VALUE`, for example
`demo/long:tokens=800,tokens_per_second=30`. The same options are request
parameters with `demo_` before them (`demo_tokens`: 800); there they win over
the name. `max_completion_tokens` and `max_tokens` mean what they always mean:
an answer longer than that is cut and finishes with `length`.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

PREFIX = "demo/"
_PARAM_PREFIX = "demo_"
_LIMIT_PARAMS = ("max_completion_tokens", "max_tokens")


class DemoOptions(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Options of one demo answer; None leaves it to the model that was named.

    Attributes:
        tokens: The length of the answer: a longer one is cut, a shorter one goes
            on with its own text. Has no effect on calls and on JSON.
        tokens_per_second: The pace; 0 for as fast as it goes.
        first_token_ms: Milliseconds from the request to the first token.
        seed: Added to the seed that the conversation gives: another answer to
            the same question.
        tool_rounds: How often a message is answered with tool calls before it is
            answered with text.
        max_tokens: Where the answer is cut with the finish reason `length`.
    """

    tokens: Annotated[int, Meta(ge=1, le=200_000)] | None = None
    tokens_per_second: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    first_token_ms: Annotated[float, Meta(ge=0, le=3.6e6)] | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    tool_rounds: Annotated[int, Meta(ge=0, le=1000)] = 1
    max_tokens: Annotated[int, Meta(ge=1)] | None = None


def split_name(model: str) -> tuple[str, dict[str, str]]:
    """Takes a model name apart.

    Args:
        model: A model name, with or without `demo/`.

    Returns:
        The bare name of the personality, and the options as they were written.

    Raises:
        ValueError: An option is not written as `OPTION=VALUE`.
    """
    name, _, written = model.removeprefix(PREFIX).partition(":")
    options: dict[str, str] = {}
    for option in filter(None, written.split(",")):
        key, equals, value = option.partition("=")
        if not equals:
            raise ValueError(f"{option!r} in a demo model's name is not OPTION=VALUE")
        options[key] = value
    return name, options


def read_options(named: Mapping[str, str], params: Mapping[str, Any]) -> DemoOptions:
    """Merges the options in a model's name with those in a request's parameters.

    Raises:
        ValueError: An option is unknown or its value out of range.
    """
    asked = {
        key.removeprefix(_PARAM_PREFIX): value
        for key, value in params.items()
        if key.startswith(_PARAM_PREFIX)
    }
    for key in _LIMIT_PARAMS:
        if params.get(key) is not None:
            asked.setdefault("max_tokens", params[key])
    try:
        return convert({**named, **asked}, DemoOptions, strict=False)
    except ValidationError as error:
        there_are = ", ".join(DemoOptions.__struct_fields__)
        raise ValueError(f"demo options: {error}; there are {there_are}") from None
