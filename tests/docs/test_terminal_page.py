"""The page on the terminal: its commands do what it says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_demo.terminal.local_tools import load_tools
from tests.fakes.plain_server import plain_server

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/terminal.md"
SHOWN = [
    "Hello from a script\n",
    "Repeat this:\n\na line of a report\n\n",
    r"Remember the number 7\nWhich number was it\?\n",
    r"cut short: \d+ bytes\n",
    r"completed \d+ ms to the first token\n",
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with plain_server() as address:
        yield f"ws://{address}/v1/chat"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("place", "shown"), [*enumerate(SHOWN)])
def test_commands_print_what_they_say(
    place: int, shown: str, url: str, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "WSSERVER_URL": url,
    }
    ran = subprocess.run(  # noqa: S603 - our own page
        ["/bin/sh", "-e", "-c", blocks("sh")[place]],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        cwd=tmp_path,
        env=os.environ | environ,
    )
    assert re.fullmatch(shown, ran.stdout), ran.stdout + ran.stderr
    assert len(SHOWN) == len(blocks("sh"))


def test_the_file_of_tools_is_one(tmp_path: Path) -> None:
    (program,) = blocks("python")
    file = tmp_path / program.partition("\n")[0].removeprefix("# ")
    file.write_text(program)
    assert [made.name for made in load_tools(file)] == ["get_time", "word_count"]
