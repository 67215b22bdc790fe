"""The commands that a line of the chat may be: `/help`, `/model NAME` and so on.

Only their names and what they are; `client_demo.terminal.program` obeys them.
"""

from difflib import get_close_matches

from msgspec import Struct


class Slash(Struct, frozen=True, kw_only=True):
    """One command.

    Attributes:
        name: With its slash.
        takes: What may follow it, for a person; empty for nothing.
        says: What it does.
    """

    name: str
    takes: str = ""
    says: str


class SlashError(Exception):
    """A line begins like a command and is none; the message says what to do."""


COMMANDS = (
    Slash(name="/help", says="shows these commands"),
    Slash(
        name="/model", takes="[NAME]", says="says which model answers, or chooses it"
    ),
    Slash(name="/models", says="lists the models that the server offers"),
    Slash(
        name="/system",
        takes="[TEXT]",
        says="says what the model is told before all, or tells it that",
    ),
    Slash(
        name="/tools",
        takes="[on|off NAME]",
        says="lists the tools that run here, or switches one",
    ),
    Slash(name="/new", takes="[MODEL]", says="begins another conversation"),
    Slash(name="/list", says="lists the conversations that were had from here"),
    Slash(name="/switch", takes="NUMBER|ID", says="goes to another conversation"),
    Slash(name="/retry", says="asks the last question again, in a copy"),
    Slash(name="/edit", takes="TEXT", says="asks TEXT in place of it, in a copy"),
    Slash(
        name="/fork",
        takes="[COUNT]",
        says="goes on in a copy, without the last COUNT answers",
    ),
    Slash(
        name="/delete",
        takes="[yes]",
        says="deletes this conversation at the server; asks before, unless told `yes`",
    ),
    Slash(name="/where", says="says where this conversation stands: id, epoch, number"),
    Slash(name="/drop", says="cuts the connection, to see it come back"),
    Slash(name="/quit", says="leaves; a running answer goes on at the server"),
)

_NAMES = tuple(each.name for each in COMMANDS)


def parse(line: str) -> tuple[str, str] | None:
    """Takes a line apart.

    Returns:
        The command's name and what follows it; None for a line that is no command:
        one that is to be said. Two slashes at the beginning say a line with one.

    Raises:
        SlashError: There is no such command.
    """
    if not line.startswith("/") or line.startswith("//"):
        return None
    name, _, rest = line.partition(" ")
    if name not in _NAMES:
        near = get_close_matches(name, _NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else "/help lists the commands"
        raise SlashError(
            f"there is no {name}: {hint} (to say it to the model, begin with two"
            " slashes)"
        )
    return name, rest.strip()


def said(line: str) -> str:
    """Returns what is said to the model by a line that is no command."""
    return line[1:] if line.startswith("//") else line


def help_lines() -> list[str]:
    """Returns a line for each command, in columns."""
    heads = [f"{each.name} {each.takes}".rstrip() for each in COMMANDS]
    width = max(map(len, heads))
    return [
        f"{head:{width}}  {each.says}"
        for head, each in zip(heads, COMMANDS, strict=True)
    ]
