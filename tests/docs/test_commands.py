"""Commands of the client in the docs have subcommands and flags that there are."""

import re
from pathlib import Path

import pytest
import typer

from client_demo.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
COMMANDS = typer.main.get_group(app).commands


def shown(page: Path) -> list[tuple[str, str]]:
    """Returns each `client_demo COMMAND` of a page, and what stands behind it."""
    text = page.read_text().replace("\\\n", " ")
    return re.findall(r"-m client_demo (\w+)([^`\n#|>]*)", text)


def flags(command: str) -> set[str]:
    options = COMMANDS[command].params
    return {flag for one in options for flag in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_client_are_as_shown(page: Path) -> None:
    for command, rest in shown(page):
        assert command in COMMANDS, command
        unquoted = re.sub(r'"[^"]*"', "", rest)
        given = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", unquoted))
        assert given <= flags(command) | {"--help"}, (command, given - flags(command))


def test_every_command_is_shown_somewhere() -> None:
    seen = {command for page in PAGES for command, _ in shown(page)}
    assert seen == set(COMMANDS)
