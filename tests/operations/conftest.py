"""The command line run in this process, with an environment of the test's own."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from tests.server.conftest import logging_is_left_as_it_was
from wsserver import cli

__all__ = ["logging_is_left_as_it_was"]  # Tests serve in this process too.


class Ran(Struct, frozen=True):
    """What a command did: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Ran]


@pytest.fixture
def wsserver(
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Command:
    """Runs `wsserver ARGUMENTS`; keywords are variables."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "WSSERVER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(*arguments: str, **variables: str) -> Ran:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["wsserver", *arguments])
            with pytest.raises(SystemExit) as left:
                cli.main()
        out, err = capfdbinary.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return Ran(code, out.decode(), err.decode())

    return run
