"""A terminal's two ends for tests: what is typed, what is shown."""

import io
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from client_demo.terminal.program import Terminal, Wanted


class Keys:
    """A terminal's two ends."""

    def __init__(self, folder: Path) -> None:
        self.console = Console(file=io.StringIO(), width=100, color_system=None)
        reader, self._writer = os.pipe()
        self._seen = 0
        self.terminal = Terminal(self.console, folder=folder, descriptor=reader)

    @property
    def shown(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        lines = self.console.file.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def type(self, line: str) -> None:
        os.write(self._writer, line.encode() + b"\n")

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        signal.raise_signal(signal.SIGINT)

    def end(self) -> None:
        os.close(self._writer)

    async def until(self, text: str) -> None:
        with anyio.fail_after(15):
            while text not in self.shown:
                await anyio.wait_writable(self._writer)

    async def until_new(self, text: str) -> None:
        """Waits for a text after what was waited for before."""
        with anyio.move_on_after(15):
            while text not in self.shown[self._seen :]:
                await anyio.wait_writable(self._writer)
        assert text in self.shown[self._seen :], self.shown[self._seen :]
        self._seen = self.shown.index(text, self._seen) + len(text)

    def run(self, url: str, **wanted: Any) -> Callable[[], Awaitable[int]]:
        return partial(self.terminal.run, Wanted(url=url, **wanted))


async def both(
    run: Callable[[], Awaitable[int]], serve: Callable[[], Awaitable[None]]
) -> int:
    """Runs a program beside the server's side of it; returns the exit code."""
    codes: list[int] = []

    async def program() -> None:
        codes.append(await run())

    with anyio.fail_after(18):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program)
            await serve()
    return codes[0]
