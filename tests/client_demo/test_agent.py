"""The worked agent on the real server: tools, approval, a network that cuts."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec import UNSET

from client_demo.agent import FolderTools, FoundFile, Match, agent
from client_demo.agent_terminal import run
from client_demo.tools import ToolContext
from protocol.control import ToolRequest
from protocol.events import LogEvent, ToolCallEvent, ToolResultEvent
from tests.fakes.proxy import proxy
from tests.fakes.server import ServerProcess
from tests.fakes.server import server as server_process

TASK = "List what is here and write a note"
MODEL = "demo/tools:tokens_per_second=0,first_token_ms=0"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def real(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[ServerProcess]:
    folder = tmp_path_factory.mktemp("server")
    async with server_process("--store", "memory", folder=folder) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "a.txt": "The Tunnel\nlight",
        "sub/b.txt": "no\nin the tunnel",
        ".env": "x",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "out.txt").symlink_to("/etc/hostname")
    return tmp_path


async def yes(text: str) -> bool:
    return bool(text)


def context() -> ToolContext:
    return ToolContext(
        ToolRequest(
            conversation="c", turn=2, call="k", name="n", arguments={},
            deadline_ms=1000, redelivered=False,
        ),
        lambda: None,
    )  # fmt: skip


def test_the_tools_see_the_folder_and_nothing_else(folder: Path) -> None:
    plain = FolderTools(folder, yes)
    assert plain.list_files() == [
        FoundFile(name="a.txt", size_bytes=16),
        FoundFile(name="sub/b.txt", size_bytes=16),
    ]
    assert plain.search_files("tunnel", context()) == [
        Match(name="a.txt", line=1, text="The Tunnel"),
        Match(name="sub/b.txt", line=2, text="in the tunnel"),
    ]
    assert plain.read_file("sub/b.txt").startswith("no")
    for name in ("out.txt", ".env", "../" + folder.name + "/a.txt", "/etc/hostname"):
        with pytest.raises(LookupError, match="list_files says"):
            plain.read_file(name)
    limits = {made.name: made.declaration.timeout_s for made in plain.all()}
    assert limits["write_note"] is None
    assert limits["read_file"] is UNSET


async def test_a_note_that_leads_elsewhere_is_not_written(folder: Path) -> None:
    (folder / "note.md").symlink_to(folder / "a.txt")
    (write,) = [m for m in FolderTools(folder, yes).all() if m.name == "write_note"]
    assert "leads elsewhere" in str(await write.run({"text": "x"}, context()))
    assert (folder / "a.txt").read_text().startswith("The Tunnel")


@pytest.mark.parametrize("agreed", [True, False])
async def test_a_note_needs_a_person(
    real: ServerProcess, folder: Path, agreed: bool
) -> None:
    """The network goes while the person thinks; nothing is asked or run twice."""
    events: list[LogEvent] = []
    asked: list[str] = []

    async with proxy(real.url) as network:

        async def approve(text: str) -> bool:
            asked.append(text)
            before = network.connections
            network.cut()
            with anyio.fail_after(10):
                while network.connections == before:
                    await anyio.lowlevel.checkpoint()
            return agreed

        answer = await agent(
            TASK, url=network.url(real.url), folder=folder, approve=approve,
            show=events.append, model=MODEL,
        )  # fmt: skip

    assert asked == [TASK]
    assert (folder / "note.md").exists() is agreed
    assert ("Written to note.md." in answer) is agreed
    assert "a.txt" in answer
    calls = [event.name for event in events if isinstance(event, ToolCallEvent)]
    assert calls == ["list_files", "write_note"]
    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert [each.status for each in results] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("typed", "written"), [("y\n", True), ("\n", False), ("", False)]
)
async def test_the_program(
    real: ServerProcess,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    written: bool,
) -> None:
    reader, writer = os.pipe()
    os.write(writer, typed.encode())
    os.close(writer)
    code = await run(
        TASK, folder=folder, url=real.url, token=None, model=MODEL,
        descriptor=reader,
    )  # fmt: skip
    os.close(reader)
    shown = capsys.readouterr()
    assert code == 0
    assert (folder / "note.md").exists() is written
    assert "2 tools answered" in shown.out
    assert "Write this note? [y/N]" in shown.err
    assert "[list_files {}]" in shown.err


async def test_the_program_says_what_went_wrong(
    real: ServerProcess, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model, code in (("demo/length", 3), ("demo/failing", 1)):
        ran = await run(
            "hi", folder=folder, url=real.url, token=None, model=model, descriptor=0
        )
        assert ran == code
    nobody = "ws://127.0.0.1:9/v1/chat"
    ran = await run(
        "hi", folder=folder, url=nobody, token=None, model=None, descriptor=0
    )
    assert ran == 4
    shown = capsys.readouterr().err
    assert "no connection" in shown
    assert "max_output_tokens" in shown
    assert "upstream_unavailable" in shown
