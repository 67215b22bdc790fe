"""Markdown that grows on a terminal, without flicker however long it gets.

A block that is finished is printed once and never again. Only the last block,
which can still change, is drawn anew, and of it no more than fits the screen.
"""

from types import TracebackType
from typing import Self

import anyio
from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

_parser = MarkdownIt("commonmark").enable("table")
_FENCES = ("```", "~~~")
_DRAW_SECONDS = 1 / 12


def split_finished(source: str) -> tuple[str, str]:
    """Splits off the blocks that more text can't change: all but the last."""
    starts = [
        token.map[0]
        for token in _parser.parse(source)
        if token.level == 0 and token.map
    ]
    if len(starts) < 2:
        return "", source
    lines = source.splitlines(keepends=True)
    return "".join(lines[: starts[-1]]), "".join(lines[starts[-1] :])


def last_lines(block: str, count: int) -> str:
    """Takes the end of a block, with the line that says what kind it is.

    A fence is kept before code and the header before rows, so the end looks as
    it does in the whole.
    """
    lines = block.splitlines(keepends=True)
    if len(lines) <= count:
        return block
    opening = 0
    if lines[0].lstrip().startswith(_FENCES):
        opening = 1
    elif lines[0].lstrip().startswith("|"):
        opening = 2
    return "".join(lines[:opening] + lines[-count:])


class Trimmed:
    """Markdown without the empty rows that its first and last block bring along."""

    def __init__(self, source: str) -> None:
        """Takes what to show."""
        self._source = source

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yields the rows, as rich asks for them."""
        rows = console.render_lines(Markdown(self._source), options, pad=False)
        shown = [place for place, row in enumerate(rows) if not _is_empty(row)]
        for row in rows[shown[0] : shown[-1] + 1] if shown else []:
            yield from row
            yield Segment.line()


def _is_empty(row: list[Segment]) -> bool:
    return not "".join(segment.text for segment in row).strip()


class _Bottom:
    """The last rows of what is drawn, so that it never exceeds the screen."""

    def __init__(self, source: str, rows: int) -> None:
        self._source = source
        self._rows = rows

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        shown = Markdown(last_lines(self._source, self._rows))
        for row in console.render_lines(shown, options, pad=False)[-self._rows :]:
            yield from row
            yield Segment.line()


class LiveMarkdown:
    """Shows text as it comes, in a `with` block; `keep_drawn` runs meanwhile.

    Attributes:
        status: A line below the text while it grows; empty for none.
    """

    def __init__(self, console: Console) -> None:
        """Draws nothing yet.

        Args:
            console: Where to draw.
        """
        self.status = ""
        self._drawn = ("", "")
        self._console = console
        self._open_block = ""
        self._printed = False
        self._live = Live(
            console=console,
            get_renderable=self._render,
            # Its thread would move the cursor while a block is being printed.
            auto_refresh=False,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.status = ""
        self._live.stop()
        self.end_block()

    def feed(self, text: str) -> None:
        """Adds text; prints the blocks that it finishes."""
        self._open_block += text
        if "\n" in text:
            finished, self._open_block = split_finished(self._open_block)
            self._print(finished)

    async def keep_drawn(self) -> None:
        """Draws some times a second, however many pieces come, until cancelled."""
        while True:
            await anyio.sleep(_DRAW_SECONDS)
            self.draw()

    def draw(self) -> None:
        """Draws the open block and the status, if they have changed."""
        now = (self._open_block, self.status)
        if now != self._drawn:
            self._drawn = now
            self._live.refresh()

    def end_block(self) -> None:
        """Prints what is there; more text begins a block of its own."""
        rest, self._open_block = self._open_block, ""
        self._print(rest)

    def _print(self, source: str) -> None:
        if not source.strip():
            return
        # All in one write: else the block would be seen twice, or not at all.
        with self._console:
            if self._live.is_started:
                self._live.refresh()
            if self._printed:
                self._console.print()
            self._printed = True
            self._console.print(Trimmed(source), end="")

    def _render(self) -> Group:
        rows = max(1, self._console.height - 3)
        return Group(
            _Bottom(self._open_block, rows),
            Text(self.status, style="dim", no_wrap=True, overflow="ellipsis"),
        )
