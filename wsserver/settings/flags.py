"""A flag for each setting, made from `Settings`: there is no list to keep in step."""

import inspect
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from wsserver.settings.sources import FIELDS, Loaded, as_written, load
from wsserver.settings.values import SECRETS, TABLES

Load = Callable[[], Loaded]
"""Reads the settings of all sources; raises `SettingsError`."""

_ALIASES = {"local_model_path": ["--model-path"]}
_NO_FLAGS = SECRETS | TABLES


def with_flags(
    command: Callable[..., int], only: Collection[str] = FIELDS
) -> Callable[..., int]:
    """Gives a command a flag for each setting.

    Args:
        command: Its first parameter gets a `Load`; the others are arguments and
            options of its own, as typer has them.
        only: The settings that it has a use for.
    """
    own = list(inspect.signature(command).parameters.values())[1:]
    own_names = {parameter.name for parameter in own}

    def run(config: str | None = None, **given: Any) -> int:
        mine = {name: given.pop(name) for name in own_names}
        flags = {name: value for name, value in given.items() if value is not None}
        path = None if config is None else Path(config)

        def loading() -> Loaded:
            return load(flags=flags, environ=os.environ, config=path)

        return command(loading, **mine)

    options: dict[str, Any] = {
        "config": typer.Option(
            "--config", metavar="FILE", help="TOML file of settings."
        )
    }
    for name in FIELDS:
        if name in only and name not in _NO_FLAGS:
            options[name] = _option(name)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=kind) for parameter in own] + [
        inspect.Parameter(
            name, kind, default=None, annotation=Annotated[_kind(name), option]
        )
        for name, option in options.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = command.__doc__
    return run


def _option(name: str) -> Any:
    field = FIELDS[name]
    metadata = msgspec.inspect.type_info(field.type)
    assert isinstance(metadata, msgspec.inspect.Metadata), "settings are described"
    schema = cast("dict[str, str]", metadata.extra_json_schema)
    flag = name.replace("_", "-")
    if isinstance(field.default, bool):
        return typer.Option(
            f"--{flag}/--no-{flag}", help=schema["description"], show_default=False
        )
    default = ""
    if field.default not in (None, ()):
        default = f" [default: {as_written(field.default)}]"
    return typer.Option(
        f"--{flag}",
        *_ALIASES.get(name, []),
        help=schema["description"] + default,
        metavar="VALUE",
        show_default=False,
    )


def _kind(name: str) -> Any:
    """Returns the option's type; None is for one that was not given."""
    switch = name in FIELDS and isinstance(FIELDS[name].default, bool)
    return bool | None if switch else str | None
