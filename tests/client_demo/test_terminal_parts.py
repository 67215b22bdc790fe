"""The parts of the terminal client that need no server."""

from pathlib import Path

import pytest

from client_demo.terminal import slash_commands
from client_demo.terminal.local_tools import ToolFileError, get_time, load_tools, taken
from client_demo.terminal.memory import (
    ChatMemory,
    MemoryFileError,
    Remembered,
    state_folder,
)
from client_demo.terminal.slash_commands import SlashError


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/model demo/echo ", ("/model", "demo/echo")),
        ("/list", ("/list", "")),
        ("hello /list", None),
        ("//list", None),
    ],
)
def test_a_line_is_a_command_or_is_said(
    line: str, command: tuple[str, str] | None
) -> None:
    assert slash_commands.parse(line) == command


def test_what_is_no_command_is_explained() -> None:
    with pytest.raises(SlashError, match="no /modal: did you mean /model"):
        slash_commands.parse("/modal x")
    with pytest.raises(SlashError, match="/help lists"):
        slash_commands.parse("/12345")
    assert slash_commands.said("//list") == "/list"
    assert slash_commands.said("a // b") == "a // b"


def test_help_has_a_line_for_each_command() -> None:
    lines = slash_commands.help_lines()
    assert len(lines) == len(slash_commands.COMMANDS)
    assert len({line.index("  ") for line in lines}) > 1
    assert lines[1].startswith("/model [NAME]")


def test_the_state_folder() -> None:
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/wsserver")
    for relative in ({}, {"XDG_STATE_HOME": "s"}):
        assert state_folder(relative) == Path.home() / ".local/state/wsserver"


async def remembering(path: Path, url: str, *names: str) -> ChatMemory:
    memory = ChatMemory(path, url)
    await memory.load()
    for name in names:
        await memory.put(Remembered(conversation=name, epoch="e", last=1))
    return memory


async def test_conversations_are_remembered_by_their_server(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "chat.json"
    assert (await remembering(path, "ws://a")).newest is None
    first = await remembering(path, "ws://a", "c1", "c2", "c3", "c1")
    await remembering(path, "ws://b", "c9")
    await first.forget("c3")

    again = await remembering(path, "ws://a")
    assert [one.conversation for one in again.conversations] == ["c2", "c1"]
    assert again.newest == Remembered(conversation="c1", epoch="e", last=1)
    assert (await remembering(path, "ws://b")).newest is not None
    assert path.stat().st_mode & 0o077 == 0
    assert [one.name for one in path.parent.iterdir()] == ["chat.json"]


@pytest.mark.parametrize("text", ["[1]", '{"x":' + "[" * 9000])
async def test_a_file_that_is_something_else_is_left_alone(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "chat.json"
    path.write_text(text)
    with pytest.raises(MemoryFileError, match=r"chat\.json: .*move it away"):
        await remembering(path, "ws://a")
    path.unlink()
    memory = await remembering(path, "ws://a")
    path.write_text("[1]")
    with pytest.raises(MemoryFileError):
        await memory.put(Remembered(conversation="c"))
    assert path.read_text() == "[1]"


async def test_a_folder_that_can_t_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memory = ChatMemory(tmp_path / "file" / "chat.json", "ws://a")
    with pytest.raises(MemoryFileError, match="file"):
        await memory.put(Remembered(conversation="c"))


def test_the_time_in_a_city() -> None:
    assert "UTC" in get_time("utc")
    assert get_time("New York")[-3:] in ("EST", "EDT")
    assert len(get_time("here")) > 10
    with pytest.raises(LookupError, match="Atlantis"):
        get_time("Atlantis")


def test_the_functions_of_a_file_are_tools(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from os.path import join\n"
        "from client_demo import tool\n\n"
        "def add(a: int, b: int) -> int:\n    return a + b\n\n"
        "@tool(name='ask', timeout_s=None)\n"
        "async def approve(text: str) -> bool:\n    return True\n\n"
        "def _hidden() -> None: ...\n"
    )
    assert [made.name for made in load_tools(file)] == ["get_time", "add", "ask"]
    assert [made.name for made in load_tools(None)] == ["get_time"]


def test_what_was_taken_of_a_file_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from typing import Literal\n"
        "def add(a: int, b: Literal[1, 2] = 1, c: str | None = None) -> int: ...\n"
        "def loose(a, b: int, c=3): ...\n"
    )
    assert taken(load_tools(file)[1:]) == (
        "add, loose (give a and c a type: as it is, the model may pass anything)"
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mine.txt", "", "has to end in .py"),
        ("mine.py", "1/0", "ZeroDivisionError: division"),
        ("mine.py", "def f(*a): ...", "has no name"),
        ("absent.py", None, "FileNotFoundError"),
        ("mine.py", "def _f() -> None: ...", "no function that could be a tool"),
    ],
)
def test_a_file_that_is_no_file_of_tools(
    tmp_path: Path, name: str, text: str | None, says: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ToolFileError, match=says):
        load_tools(tmp_path / name)
