"""Libraries that only some of the programs need: what to say where one is missing."""

from collections.abc import Generator
from contextlib import contextmanager

import typer

from client_demo.exit_codes import WRONG_USAGE


@contextmanager
def needing(extra: str, *libraries: str) -> Generator[None]:
    """Ends the program with a remedy where what is imported within is not installed.

    Args:
        extra: The extra of wsserver that has the libraries.
        libraries: Their top-level modules.

    Raises:
        typer.Exit: One is missing; standard error says so.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in libraries:
            raise
        typer.echo(
            f"{missing} is not installed; this program needs the extra `{extra}`:"
            f" `requirements/install run` in a checkout, or pip install '.[{extra}]'"
            " there",
            err=True,
        )
        raise typer.Exit(WRONG_USAGE) from None
