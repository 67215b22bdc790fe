"""The command line. What is slow to import is imported late."""

import io
import os
import sys
from typing import Annotated

import typer

from wsserver import __version__
from wsserver.operations.commands import add_config_commands, doctor
from wsserver.operations.conversation_commands import add_conversation_commands
from wsserver.operations.replay.commands import replay_command
from wsserver.operations.shell import EXIT_BAD_SETTINGS, EXIT_FAILED, one_line
from wsserver.operations.usage import wrong_usage
from wsserver.settings import SettingsError
from wsserver.settings.flags import Load, with_flags
from wsserver.telemetry.log_stream import LogStream


def main() -> None:
    """Runs the command line and exits with its code."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # A terminal may not have all of Unicode.
        reconfigure(errors="backslashreplace")
    commands = typer.main.get_command(command_line())
    try:
        code = commands(standalone_mode=False, prog_name="wsserver")
    except SettingsError as error:
        code = _failed(EXIT_BAD_SETTINGS, *map(str, error.args))
    except typer.TyperException as error:
        code = _failed(EXIT_BAD_SETTINGS, wrong_usage(error, commands, sys.argv))
    except OSError as error:
        if error.filename is None:
            _write_no_more()
        where = error.filename or "can't write the output"
        code = _failed(EXIT_FAILED, f"{where}: {error.strerror}")
    except typer.Abort:
        code = 130
    sys.exit(code)


def _failed(code: int, *faults: str) -> int:
    """Prints a line for each fault, where that can be; returns the exit code."""
    lines = LogStream(sys.stderr or sys.stdout or io.StringIO())
    for fault in faults:
        lines.write(f"{one_line(fault)}\n")
        lines.flush()
    return code


def _write_no_more() -> None:
    """Keeps the interpreter from writing at its exit what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_line() -> typer.Typer:
    """Returns all commands."""
    app = typer.Typer(
        pretty_exceptions_enable=False,  # they show local variables, tokens too
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_wsserver)
    app.command("serve")(with_flags(_serve))
    app.command("doctor")(with_flags(doctor))
    app.command("replay")(replay_command)
    add_config_commands(app)
    add_conversation_commands(app)
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


def _serve(load: Load) -> int:
    """Serve until SIGTERM or Ctrl-C, then drain. A second signal stops at once.

    SIGHUP reads certificates and keys again. Exits with 0 when it was told to stop
    and all came to its end, with 1 when it was told twice, with 3 when something hung.
    """
    from wsserver.process import run

    return run(load())
