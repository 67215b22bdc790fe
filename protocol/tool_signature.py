"""What a callable takes, as its signature says: the schema of a tool.

For both ends: a server's own tools and a client's are declared alike, and take alike
what a model gives. Running them is theirs.
"""

import enum
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

_SHOWN = (type(None), bool, int, float, str, enum.Enum)
"""Defaults of these types stand in the schema."""


class UnusableToolError(TypeError):
    """Something can't be a tool; the message says what and why."""


class Signature(Struct, frozen=True, kw_only=True):
    """What a callable takes.

    Attributes:
        arguments: What the model's arguments are converted to.
        parameters: The JSON Schema of that.
        context: The name of the parameter that takes what is known of the call, if
            any.
    """

    arguments: type[Struct]
    parameters: dict[str, Any]
    context: str | None = None

    def keywords(self, arguments: Any, context: object) -> dict[str, Any]:
        """Returns what to call the callable with.

        Args:
            arguments: The model's.
            context: Of the type that `read` was given.

        Raises:
            msgspec.ValidationError: The arguments don't fit.
        """
        made = msgspec.convert(arguments, self.arguments)
        keywords = {name: getattr(made, name) for name in made.__struct_fields__}
        if self.context is not None:
            keywords[self.context] = context
        return keywords


def read(function: Callable[..., Any], context: type) -> Signature:
    """Reads a callable's parameters and type hints.

    Args:
        function: Takes its arguments by name.
        context: The type hint of a parameter that is no argument of the model's.

    Raises:
        UnusableToolError: No JSON object can hold what it takes.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(_hinted(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise UnusableToolError(f"its signature can't be read: {error}") from None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    place: str | None = None
    for parameter in parameters:
        name, hint = parameter.name, hints.get(parameter.name, Any)
        if hint is context:
            place = name
            continue
        if parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise UnusableToolError(
                f"its parameter {parameter} has no name to be given by"
            )
        if parameter.default is parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, _default(parameter.default)))
    try:
        arguments = msgspec.defstruct(
            "Arguments", fields, kw_only=True, frozen=True, forbid_unknown_fields=True
        )
        return Signature(
            arguments=arguments, parameters=_schema(arguments), context=place
        )
    except (NameError, TypeError) as error:
        raise UnusableToolError(f"no JSON holds what it takes: {error}") from None


def is_async(function: Callable[..., Any]) -> bool:
    """Whether what a callable returns has to be awaited.

    Raises:
        UnusableToolError: It yields.
    """
    called = getattr(function, "__call__", None)  # noqa: B004 - of an object
    if any(map(inspect.isgeneratorfunction, (function, called))) or any(
        map(inspect.isasyncgenfunction, (function, called))
    ):
        raise UnusableToolError("it is a generator; return a list instead")
    return any(map(inspect.iscoroutinefunction, (function, called)))


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the callable that partial ones are made of."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _hinted(function: Callable[..., Any]) -> Any:
    """Returns what has the type hints of a callable."""
    function = inner(function)
    return function if inspect.isroutine(function) else type(function).__call__


def _default(value: Any) -> Any:
    if isinstance(value, _SHOWN):
        return value
    return msgspec.field(default_factory=lambda: value)


def _schema(arguments: type[Struct]) -> dict[str, Any]:
    """Returns an object schema: models are not told of one behind a `$ref`."""
    (top,), components = msgspec.json.schema_components(
        [arguments], ref_template="#/$defs/{name}"
    )
    schema: dict[str, Any] = components.pop(top["$ref"].rpartition("/")[2])
    del schema["title"]
    return schema | ({"$defs": components} if components else {})
