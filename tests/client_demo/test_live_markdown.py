"""Markdown that grows: finished blocks once, the open one bounded."""

import io
import re
import threading

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from client_demo.live_markdown import LiveMarkdown, last_lines, split_finished

DOCUMENT = """\
# Title

A paragraph with *words*
over two lines.

- one
- two

  still two

```python
def f():

    return 1
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

The end.
"""


def console(height: int = 20) -> Console:
    return Console(file=io.StringIO(), width=60, height=height, color_system=None)


def output(of: Console) -> str:
    assert isinstance(of.file, io.StringIO)
    return of.file.getvalue()


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


@given(st.lists(st.sampled_from(DOCUMENT.split("\n\n")), max_size=8))
def test_splitting_loses_nothing(blocks: list[str]) -> None:
    source = "\n\n".join(blocks)
    finished, rest = split_finished(source)
    assert finished + rest == source
    assert split_finished(rest) == ("", rest), "one block is left"


@pytest.mark.parametrize("step", [1, 3, 50, 1000])
def test_grown_it_looks_as_it_does_in_one_piece(step: int) -> None:
    whole, grown = console(), console()
    whole.print(Markdown(DOCUMENT))
    with LiveMarkdown(grown) as live:
        for start in range(0, len(DOCUMENT), step):
            live.feed(DOCUMENT[start : start + step])
    assert plain(output(grown)) == plain(output(whole))


def test_a_block_that_is_ended_begins_no_second_time() -> None:
    grown = console()
    with LiveMarkdown(grown) as live:
        live.feed("before")
        live.end_block()
        grown.print("a tool is called")
        live.feed("after")
    assert plain(output(grown)) == ["before", "a tool is called", "after"]


@pytest.mark.parametrize("opening", ["", "```python\n", "| a |\n|---|\n"])
def test_what_is_drawn_anew_fits_the_screen(opening: str) -> None:
    row = "| x |\n" if opening.startswith("|") else "word " * 30 + "\n"
    shown = Console(
        file=io.StringIO(), width=60, height=12, force_terminal=True, color_system=None
    )
    live = LiveMarkdown(shown)
    with live:
        live.feed(opening + row * 300)
        rows = shown.render_lines(live._render(), shown.options)
        assert len(rows) <= 11
        live._open_block = ""


def test_the_end_of_a_block_keeps_what_says_its_kind() -> None:
    code = "```python\n" + "".join(f"{n}\n" for n in range(9))
    assert last_lines(code, 2) == "```python\n7\n8\n"
    table = "| a |\n|---|\n" + "".join(f"| {n} |\n" for n in range(9))
    assert last_lines(table, 1) == "| a |\n|---|\n| 8 |\n"
    assert last_lines("a\nb\n", 2) == "a\nb\n"


def test_the_cost_of_a_piece_does_not_grow_with_the_answer() -> None:
    """C-02, in the terminal: what was finished is not parsed again."""
    grown = console()
    with LiveMarkdown(grown) as live:
        for number in range(400):
            live.feed(f"Paragraph {number}\n\n")
            assert len(live._open_block) < 40
    assert len(re.findall("Paragraph", output(grown))) == 400


def test_a_block_is_never_on_the_screen_twice() -> None:
    class Writes(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return super().write(text)

    writes: list[str] = []
    shown = Console(file=Writes(), width=60, height=12, force_terminal=True)
    with LiveMarkdown(shown) as live:
        live.feed("only once")
        live.draw()
        live.draw()
        assert len(writes) == 2, "once at the start, and once for the text"
        writes.clear()
        live.end_block()
        assert len(writes) == 1
        assert writes[0].count("only once") == 1


async def test_it_is_drawn_by_no_thread() -> None:
    """One would move the cursor between a block's first row and its last."""
    shown = Console(file=io.StringIO(), width=60, height=12, force_terminal=True)
    before = threading.active_count()
    with LiveMarkdown(shown) as live:
        assert threading.active_count() == before
        live.feed("so far")
        with anyio.move_on_after(0.5):
            await live.keep_drawn()
        assert "so far" in output(shown)
