"""The command line: `wsserver serve`, `wsserver config show`.

Every setting is a flag of the same name; the flags are made from `Settings`, so
there is no list to keep in step. What is slow to import is imported late.
"""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from wsserver import __version__
from wsserver.settings import SECRETS, TABLES
from wsserver.sources import FIELDS, Loaded, SettingsError, load, show

EXIT_BAD_SETTINGS = 2

_ALIASES = {"local_model_path": ["--model-path"]}
_NO_FLAGS = SECRETS | TABLES


def main() -> None:
    """Runs the command line and exits with its code."""
    try:
        code = _app()(standalone_mode=False, prog_name="wsserver")
    except (SettingsError, typer.TyperException) as error:
        message = str(error)
        if isinstance(error, typer.TyperException):
            message = f"{error.format_message().rstrip('.')}; see `wsserver --help`"
        print(f"wsserver: {message}", file=sys.stderr)  # noqa: T201
        code = EXIT_BAD_SETTINGS
    except typer.Abort:
        code = 130
    sys.exit(code)


def _app() -> typer.Typer:
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,  # they show local variables, tokens too
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_wsserver)
    app.command("serve")(_with_settings(_serve))
    config = typer.Typer(help="Look at the settings.", rich_markup_mode=None)
    config.callback()(lambda: None)
    config.command("show")(_with_settings(_show))
    app.add_typer(config, name="config")
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wsserver {__version__}")
        raise typer.Exit


def _wsserver(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which it is."
        ),
    ] = False,
) -> None:
    """Streams model answers over WebSockets."""
    del version


def _serve(loaded: Loaded) -> int:
    """Serve until SIGTERM or Ctrl-C, then drain. A second signal stops at once."""
    from wsserver.process import run

    return run(loaded)


def _show(loaded: Loaded) -> int:
    """Show every setting and where it comes from, as a TOML file."""
    typer.echo(show(loaded), nl=False)
    return 0


def _with_settings(command: Callable[[Loaded], int]) -> Callable[..., int]:
    """Gives a command a flag for each setting."""

    def run(config: str | None = None, **given: str | None) -> int:
        flags = {name: value for name, value in given.items() if value is not None}
        path = None if config is None else Path(config)
        return command(load(flags=flags, environ=os.environ, config=path))

    options: dict[str, Any] = {
        "config": typer.Option(
            "--config", metavar="FILE", help="TOML file of settings."
        )
    }
    for name, field in FIELDS.items():
        if name in _NO_FLAGS:
            continue
        metadata = msgspec.inspect.type_info(field.type)
        assert isinstance(metadata, msgspec.inspect.Metadata), "settings are described"
        schema = cast("dict[str, str]", metadata.extra_json_schema)
        default = "" if field.default in (None, ()) else f" [default: {field.default}]"
        options[name] = typer.Option(
            f"--{name.replace('_', '-')}",
            *_ALIASES.get(name, []),
            help=schema["description"] + default,
            metavar="VALUE",
            show_default=False,
        )
    annotations = {name: Annotated[str | None, o] for name, o in options.items()}
    kind = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [
            inspect.Parameter(name, kind, default=None, annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    run.__annotations__ = annotations
    run.__doc__ = command.__doc__
    return run
