"""A client in another language: a program that reads what to do and says what it did.

One JSON object a line, on standard input and output; see
docs/how-to/write-a-client.md.
"""

import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import orjson

STATE = {
    "sent",
    "link",
    "wait_ms",
    "gave_up",
    "conversations",
    "asked",
    "replied",
    "told",
}


class ProgramDriver:
    """A `Driver` over a program's standard input and output."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._program = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)  # noqa: S603

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program."""
        self._program.kill()
        self._program.communicate()

    def do(self, op: dict[str, Any]) -> dict[str, Any]:
        if op["op"] == "begin" and self._program.poll() is not None:
            self.close()
            self._program = self._start()
        stdin, stdout = self._program.stdin, self._program.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(orjson.dumps(op).decode() + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        assert line, f"the program ended at {op}"
        try:
            state = orjson.loads(line)
        except ValueError:
            state = None
        assert isinstance(state, dict), f"the answer is no JSON object: {line[:200]!r}"
        missing = STATE - state.keys()
        assert not missing, f"the answer to {op} lacks {sorted(missing)}"
        return state
