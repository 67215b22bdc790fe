"""Writes the reference of the command lines: `python -m tests.docs.cli_page`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from client_demo.cli import app as client_app
from client_demo.terminal.slash_commands import COMMANDS, Slash
from wsserver.cli import command_line as server_app
from wsserver.settings.sources import FIELDS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

_HEAD = """\
# Command line

<!-- Made by `python -m tests.docs.cli_page` from the programs; do not edit. -->

`wsserver` serves and looks after the server (also `python -m wsserver`); `python -m client_demo` talks
to one. Each command says all of this with `--help`, and nothing is read from a terminal but by `chat`,
`agent` and the question of `conversations delete`.

## wsserver

`wsserver --version` says which it is. `wsserver --install-completion` sets up completion for the shell
you are in (bash, zsh, fish, PowerShell); `--show-completion` prints it.

Exit codes, unless a command says otherwise: 0 for success, 1 for a check or a store that failed, 2 for
wrong usage or bad settings, which one line on standard error explains.
"""

_CLIENT = """
## client_demo

A client in the terminal, for scripts, and as an example of an agent.
"""

_SLASH = """
#### Commands at the prompt

Alt-Enter begins a new line, the arrows go through what was typed before, Tab completes. Ctrl-C stops
the answer, or gives up a command that waits; a second one does not wait for the stop. Ctrl-D leaves.

| command | |
|---|---|
"""


_KINDS = {int: "COUNT", float: "NUMBER"}


def page() -> str:
    """Returns the page as it has to be."""
    parts = [_HEAD]
    parts += _commands("wsserver", typer.main.get_command(server_app()))
    parts.append(_CLIENT)
    parts += _commands("python -m client_demo", typer.main.get_command(client_app))
    return "".join(parts)


def _commands(program: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        full = f"{program} {name}"
        if hasattr(command, "commands"):
            yield from _commands(full, command)
            continue
        yield from _command(full, command)
        if full == "python -m client_demo chat":
            yield _SLASH + "".join(map(_slash, COMMANDS))


def _slash(command: Slash) -> str:
    usage = f"{command.name} {command.takes}".rstrip()
    return f"| `{_cell(usage)}` | {command.says} |\n"


def _command(full: str, command: Any) -> Iterator[str]:
    shown = full.removeprefix("python -m ")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([full, "[OPTIONS]", *map(_usage, arguments)])
    yield f"\n### {shown}\n\n```text\n{usage}\n```\n\n{_flowing(command.help)}\n"
    of_settings = any(p.name == "config" for p in command.params)
    settings = [p for p in command.params if of_settings and p.name in FIELDS]
    own = [p for p in command.params if p not in [*arguments, *settings]]
    rows = [f"| `{_name(p)}` | {_cell(p.help)} |\n" for p in arguments]
    rows += [f"| {_flags(p)} | {_cell(_described(p))} |\n" for p in own]
    if [p.name for p in settings] == ["store"]:
        rows += ["| `--store VALUE` | As the [setting](settings.md) `store`. |\n"]
    elif settings:
        rows += ["| and | each [setting](settings.md) as a flag |\n"]
    yield "\n| | |\n|---|---|\n" + "".join(rows)


def _usage(argument: Any) -> str:
    name = _name(argument)
    many = "..." if argument.nargs == -1 and not name.endswith("...") else ""
    return f"{name}{many}" if argument.required else f"[{name}{many}]"


def _name(argument: Any) -> str:
    return argument.metavar or argument.name.upper()


def _flags(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    value = "" if option.is_flag else f" {_value(option)}"
    return ", ".join(f"`{name}{value}`" for name in names)


def _value(option: Any) -> str:
    if option.metavar:
        return option.metavar
    kind = option.type_descriptor.annotation
    return _KINDS.get(kind, option.name.upper())


def _described(option: Any) -> str:
    parts = [option.help or ""]
    if option.envvar:
        parts.append(f"Variable: `{option.envvar}`.")
    if option.default is not None and not option.is_flag:
        parts.append(f"Default: `{option.default}`.")
    return " ".join(filter(None, parts))


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def _flowing(text: str) -> str:
    """Returns a help text as Markdown: paragraphs as they are, one space a gap."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    PAGE.write_text(page())
