"""What a check found: one line for a person, one line of JSON for a program."""

import re
from collections.abc import Callable
from typing import Literal

import msgspec
import typer
from msgspec import Struct

from wsserver.operations.printable import printable

Status = Literal["ok", "warn", "fail"]

_COLORS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW}
_ENCODE = msgspec.json.Encoder().encode


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one check.

    Attributes:
        check: What was looked at.
        status: `warn` is for what works now, but may not tomorrow.
        says: What was found.
        remedy: What to do; always there unless `ok`.
    """

    check: str
    status: Status
    says: str
    remedy: str | None = None


def ok(check: str, says: str) -> Finding:
    """Makes the finding that all is well."""
    return Finding(check=check, status="ok", says=says)


def warn(check: str, says: str, remedy: str) -> Finding:
    """Makes the finding that something may go wrong."""
    return Finding(check=check, status="warn", says=says, remedy=remedy)


def fail(check: str, says: str, remedy: str) -> Finding:
    """Makes the finding that something does not work."""
    return Finding(check=check, status="fail", says=says, remedy=remedy)


def taken_apart(message: str, otherwise: str) -> tuple[str, str]:
    """Returns what is wrong and what to do, as an error's message has them.

    Args:
        message: `This is wrong; do that`, or two sentences.
        otherwise: What to do where it says nothing of that.
    """
    says, *remedy = re.split(r"[;.] ", message, maxsplit=1)
    return says, remedy[0].rstrip(".") if remedy else otherwise


Tell = Callable[[Finding], None]
"""Takes findings as they come."""


class Report:
    """Prints findings as they come.

    Attributes:
        failed: Whether any of them is a failure.
    """

    def __init__(self, *, as_json: bool) -> None:
        """Begins empty.

        Args:
            as_json: One JSON object a line, rather than text.
        """
        self.failed = False
        self._as_json = as_json

    def add(self, finding: Finding) -> None:
        """Prints a finding."""
        self.failed = self.failed or finding.status == "fail"
        if self._as_json:
            typer.echo(_ENCODE(finding))
            return
        color = _COLORS.get(finding.status, typer.colors.RED)
        remedy = "" if finding.remedy is None else f" -> {finding.remedy}"
        word = typer.style(f"{finding.status:4}", fg=color)
        # An upstream's own words may hold anything.
        said = printable(" ".join(f"{finding.says}{remedy}".split()))
        typer.echo(f"{word}  {finding.check:12}  {said}")
