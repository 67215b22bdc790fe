"""What is wrong with a command line, and which help says more."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer


def wrong_usage(error: typer.TyperException, commands: Any, argv: Sequence[str]) -> str:
    """Says what is wrong, and names the help of the command that was meant.

    Args:
        error: What the command line met.
        commands: The group of all commands.
        argv: As of `sys`.
    """
    meant, *above = _meant(commands, argv)
    option = getattr(error, "option_name", None)
    for called, group in above:
        if any(option in parameter.opts for parameter in group.params):
            return f"{option} stands before the command: `{called} {option}`"
    says = error.format_message().rstrip(".")
    says += " See" if says.endswith("?") else "; see"
    return f"{says} `{meant[0]} --help`"


def _meant(command: Any, argv: Sequence[str]) -> list[tuple[str, Any]]:
    """Returns the command that was called, and the groups it is in: how, and itself."""
    called = _program(argv[0])
    found = [(called, command)]
    for word in argv[1:]:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        called = f"{called} {word}"
        found.insert(0, (called, command))
    return found


def _program(called: str) -> str:
    """Returns how to call the program again: its name, or its path if that is no command."""
    path = Path(called)
    if path.name == "__main__.py":
        return "python -m wsserver"
    found = shutil.which(path.name)
    on_path = found is not None and path.exists() and path.samefile(found)
    return path.name if on_path else called
