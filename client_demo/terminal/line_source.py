"""Where the lines of the chat come from: an edited prompt, or a pipe."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from client_demo.keyboard import lines
from client_demo.terminal.slash_commands import COMMANDS


class LineCancelled(Exception):  # noqa: N818 - not an error
    """The user pressed Ctrl-C at the prompt: the line is void."""


class LineSource(Protocol):
    """Gives lines, one at a time."""

    async def next(self) -> str | None:
        """Shows the prompt and waits for a line; None at the end of the input.

        Raises:
            LineCancelled: The line is void.
        """
        ...

    def refresh(self) -> None:
        """Something that is shown beside the prompt has changed."""
        ...


class PipedLines:
    """Lines of a file, a pipe or a plain terminal."""

    def __init__(self, descriptor: int, show_prompt: Callable[[], None]) -> None:
        """Reads nothing yet.

        Args:
            descriptor: Open for reading.
            show_prompt: Called before each line.
        """
        self._lines: AsyncGenerator[str] = lines(descriptor)
        self._show_prompt = show_prompt

    async def next(self) -> str | None:
        """As `LineSource` says; a Ctrl-C is the program's business."""
        self._show_prompt()
        return await anext(self._lines, None)

    def refresh(self) -> None:
        """Shows nothing beside the prompt."""


class EditedLines:
    """Lines that are edited: arrows, history, completion, Alt-Enter for a new line."""

    def __init__(self, history: Path, status: Callable[[], str]) -> None:
        """Draws nothing yet.

        Args:
            history: Where the lines are kept, for the arrow keys.
            status: Says what stands below the prompt.
        """
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        self._session: PromptSession[str] = PromptSession(
            "> ",
            history=FileHistory(str(history)),
            completer=WordCompleter([each.name for each in COMMANDS], sentence=True),
            complete_while_typing=False,
            key_bindings=_keys(),
            bottom_toolbar=status,
            enable_history_search=True,
        )

    async def next(self) -> str | None:
        """As `LineSource` says."""
        try:
            # What is shown meanwhile goes above the prompt.
            with patch_stdout(raw=True):
                # The program has a receiver of its own for the signal.
                return await self._session.prompt_async(handle_sigint=False)
        except KeyboardInterrupt:
            raise LineCancelled from None
        except EOFError:
            return None

    def refresh(self) -> None:
        """Draws what stands below the prompt."""
        self._session.app.invalidate()


def is_terminal() -> bool:
    """Whether a person sits at both ends."""
    return (
        sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.insert_text("\n")

    return keys
