"""What the operator's commands have in common for the shell: exit codes, `--json`."""

from typing import Annotated

import typer

from wsserver.operations.printable import printable

EXIT_FAILED = 1
"""A check failed, or what was asked for could not be done."""
EXIT_BAD_SETTINGS = 2
"""No server would start with the settings; also the code of a wrong command line."""
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


def one_line(message: str) -> str:
    """Returns an error as it is printed: one line, whatever names it holds."""
    return f"wsserver: {printable(' '.join(message.split()))}"
