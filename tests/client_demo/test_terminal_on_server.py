"""`chat` against the real server: commands, restarts, and a real terminal."""

import os
import pty
import signal
import sys
import termios
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from client_demo import connect
from client_demo.terminal.local_tools import load_tools
from tests.client_demo.keys import Keys, both
from tests.fakes.server import ServerProcess
from tests.fakes.server import server as server_process

ECHO = "demo/echo:tokens_per_second=0,first_token_ms=0"
SLOW = "demo/long:tokens_per_second=200,tokens=300"


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


async def session(
    real: ServerProcess, folder: Path, *steps: tuple[str, str], **wanted: object
) -> str:
    """Types each line once the text before it was shown; returns all that was."""
    keys = Keys(folder)

    async def typing() -> None:
        for awaited, line in steps:
            await keys.until_new(awaited)
            keys.type(line)

    assert await both(keys.run(real.url, **wanted), typing) == 0
    return keys.shown


async def test_commands(real: ServerProcess, tmp_path: Path) -> None:
    shown = await session(
        real, tmp_path,
        (">", "/retry"),
        ("nothing has been asked here yet", "/help"),
        ("/quit", "/models"),
        ("demo/silent", f"/model {ECHO}"),
        ("from the next answer on", "/model"),
        (ECHO, "one"),
        ("one\nfirst token", "/fork 2"),
        ("only one question has been asked here", "two"),
        ("two\nfirst token", "/edit three"),
        ("three\nfirst token", "/retry"),
        ("three\nfirst token", "/fork 2"),
        ("conversation", "/where"),
        ("· connected", "/fork 9"),
        ("nothing has been asked here yet", "/list"),
        ("  4  c-", "/switch 4"),
        ("\n> two\n", "/switch 17"),
        ("no number 17", "/delete yes"),
        ("conversation", "/list"),
        ("  3  conv_", "/system Be brief"),
        ("from the next answer on: Be brief", "/system"),
        ("Be brief", "/system"),
        (">", "/edit"),
        ("say what to ask", "/tools on"),
        ("say /tools", "/fly"),
        ("there is no /fly", "/model nope"),
        ("more. The others: demo/length", "/quit"),
    )  # fmt: skip
    assert "\n> /fork" not in shown


async def test_tools_run_and_are_switched(real: ServerProcess, tmp_path: Path) -> None:
    tools = load_tools(None)
    model = "demo/tools:tokens_per_second=0,first_token_ms=0"
    await session(
        real, tmp_path,
        (">", "/tools"),
        ("on         get_time", "What time is it in Tokyo?"),
        ("calls get_time {'place': 'Tokyo'}", "/tools off get_time"),
        ("get_time is off", "/tools"),
        ("off        get_time", "What time is it in Tokyo?"),
        ("this conversation has none", "/tools on get_time"),
        ("get_time is on", "/tools off pliers"),
        ("no tool pliers", "/quit"),
        model=model, tools=tools,
    )  # fmt: skip
    again = await session(real, tmp_path, ("\n>", "/quit"))
    assert "Let me look that up.\ncalled get_time {'place': 'Tokyo'}: ok\n" in again


async def test_tools_of_another_client_stay(
    real: ServerProcess, tmp_path: Path
) -> None:
    async def weather(city: str) -> str:
        """Tells the weather."""
        return city

    async with connect(real.url) as client:
        chat = await client.open("agents", model=ECHO, tools=[weather])
        await session(
            real, tmp_path,
            (">", "/tools"),
            ("elsewhere  weather  Tells the weather.", "/tools on get_time"),
            ("get_time is on", "/tools"),
            ("elsewhere  weather", "/quit"),
            conversation="agents", tools=load_tools(None),
        )  # fmt: skip
        assert [one.name for one in chat.view.config.tools or ()] == [
            "weather",
            "get_time",
        ]


async def test_a_restart_goes_on_in_the_middle_of_an_answer(
    real: ServerProcess, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)

    async def leave_early() -> None:
        await keys.until(">")
        keys.type("tell me")
        await keys.until("\n\n")
        keys.interrupt()
        await keys.until("interrupted (by_client)")
        await keys.until("\n> ")
        keys.end()

    assert await both(keys.run(real.url, model=SLOW), leave_early) == 0
    assert "stopped in" in keys.shown

    name = keys.shown.split("conversation ")[1].split(" ")[0]
    async with connect(real.url) as client:
        running = (await client.open(name)).send("more")
        await running.accepted()
        again = await session(
            real, tmp_path,
            ("> more", "/drop"),
            ("tokens/s", "/quit"),
        )  # fmt: skip
    assert f"conversation {name}" in again
    assert "> tell me" in again

    fresh = await session(real, tmp_path, (">", "/quit"), new=True)
    assert name not in fresh


async def test_a_server_that_forgot_is_noticed(tmp_path: Path) -> None:
    server_folder = tmp_path / "server"
    server_folder.mkdir()
    async with server_process("--store", "memory", folder=server_folder) as first:
        await session(
            first, tmp_path, (">", "hi"), ("first token", "/quit"), model=ECHO
        )
        port = int(first.url.rpartition(":")[2].partition("/")[0])
        await first.kill()
    async with server_process(
        "--store", "memory", folder=server_folder, port=port
    ) as second:
        shown = await session(second, tmp_path, (">", "/quit"))
    assert "hi: The server no longer has this conversation" in shown


@pytest.mark.timeout(60)
async def test_a_person_at_a_real_terminal(real: ServerProcess, tmp_path: Path) -> None:
    """Edits, stops with Ctrl-C, is told how to leave, and leaves with Ctrl-D."""
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))
    command = [sys.executable, "-m", "client_demo", "chat", "--url", real.url]
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
    shown = ""

    async def until(text: str) -> None:
        nonlocal shown
        with anyio.move_on_after(20):
            while text not in shown:
                await anyio.wait_readable(terminal)
                drawn = os.read(terminal, 65_536)
                if b"\x1b[6n" in drawn:  # asks where the cursor is
                    os.write(terminal, b"\x1b[1;1R")
                shown += drawn.decode(errors="replace")
        assert text in shown, shown
        shown = shown.partition(text)[2]

    process = await anyio.open_process(
        [*command, "--model", "demo/stalling"], stdin=end, stdout=end, stderr=end,
        env=environ, start_new_session=True,
    )  # fmt: skip
    os.close(end)
    try:
        await until("/help")
        os.write(terminal, b"hallo\x02\x02\x02\x02\x02wrong\x03")
        await until("/quit leaves")
        await until("/help")
        os.write(terminal, b"/wh\t")
        await until("ere")  # what was typed is not drawn again
        os.write(terminal, b"\r")
        await until("epoch")
        os.write(terminal, b"tell me more\r")
        await until("answer starts")
        process.send_signal(signal.SIGINT)
        await until("interrupted (by_client)")
        await until("/help")
        os.write(terminal, b"\x04")
        with anyio.fail_after(10):
            assert await process.wait() == 0
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
            os.close(terminal)
    kept = (tmp_path / "wsserver" / "chat_history").read_text()
    assert "+tell me more" in kept
    assert "wrong" not in kept
