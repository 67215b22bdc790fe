"""The standard streams of the programs: closed, full, or without all of Unicode.

Whoever starts a program may have closed them, as `2>&-` does; Python then has None in
their place.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

from client_demo.exit_codes import FAILED

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


@contextmanager
def standard_streams() -> Generator[None]:
    """Gives the block streams that can be used.

    One that is closed is as good as `/dev/null`; a character that a terminal does not
    have is written as an escape.

    Raises:
        SystemExit: What the block wrote can't be written, or a file of its can't be
            used; standard error says why, unless it is only that nobody reads any more.
    """
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is None:
            # The interpreter must not write at its exit what could not be written.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            what = error.filename or "can't write the output"
            typer.echo(f"{what}: {error.strerror}", err=True)
        sys.exit(FAILED)
