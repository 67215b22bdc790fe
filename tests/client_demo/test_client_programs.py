"""ask, chat and the command line, over real sockets, signals and pipes."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from typer.testing import CliRunner

from client_demo.ask import ask
from client_demo.cli import app
from client_demo.keyboard import lines
from tests.client_demo.double import Double, Peer, double
from tests.client_demo.keys import Keys, both


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server() -> AsyncGenerator[Double]:
    async with double() as made:
        yield made


def asking(server: Double, **members: Any) -> Callable[[], Awaitable[int]]:
    usual = {
        "url": server.url, "token": None, "model": None, "conversation": "c",
        "as_json": False,
    }  # fmt: skip
    return partial(ask, "hi", **usual | members)


async def serve_answer(server: Double, *texts: str) -> None:
    await server.connection(1)
    await server.answer("c", *texts)


@pytest.mark.parametrize("as_json", [False, True])
async def test_ask_lets_nothing_through_that_could_harm_a_terminal(
    server: Double,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    answer = partial(serve_answer, server, "a\u202eb", "\x9bc")
    assert await both(asking(server, as_json=as_json), answer) == 0
    out = capsys.readouterr().out
    assert "ab" in out
    assert "\u202e" not in out
    assert "\x9b" not in out


async def test_ask_prints_the_answer(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await both(asking(server), partial(serve_answer, server, "a ", "b")) == 0
    assert capsys.readouterr().out == "a b\n"


async def test_ask_prints_events_as_lines_of_json(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asking(server, as_json=True)
    assert await both(run, partial(serve_answer, server, "a", "b")) == 0
    printed = [msgspec.json.decode(line) for line in capsys.readouterr().out.split()]
    assert printed == server.logs["c"]


async def test_ask_tells_incomplete_from_failed(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def cut_short() -> None:
        turn = await server.begin()
        await server.say("c", turn, "half")
        await server.done("c", turn, status="incomplete", reason="max_output_tokens")

    async def fail() -> None:
        await server.connection(2)
        send = await server.peer.command("send")
        turn = await server.start("c", await server.message("c", send))
        await server.event(
            "c", "error", turn=turn, code="upstream_timeout", message="too late",
            retryable=True,
        )  # fmt: skip
        await server.done("c", turn, status="failed")

    async def refuse() -> None:
        await server.connection(3)
        await server.peer.refuse(await server.peer.command("send"), "busy")

    assert await both(asking(server), cut_short) == 3
    assert await both(asking(server), fail) == 1
    assert await both(asking(server), refuse) == 1
    shown = capsys.readouterr()
    assert shown.out == "half\n\n"
    for said in ("max_output_tokens", "upstream_timeout: too late", "busy: because"):
        assert said in shown.err


async def test_ask_says_when_its_text_is_not_the_servers(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def lie() -> None:
        turn = await server.begin()
        await server.done("c", turn, text={"bytes": 1, "crc32": 1})

    assert await both(asking(server), lie) == 1
    assert "not the text" in capsys.readouterr().err


async def test_ctrl_c_stops_the_answer_at_what_was_shown(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve() -> None:
        turn = await server.begin()
        await server.say("c", turn, "half ")
        while "half" not in shown():
            await anyio.lowlevel.checkpoint()
        signal.raise_signal(signal.SIGINT)
        interrupt = await server.peer.command("interrupt")
        assert (interrupt["turn"], interrupt["seen_seq"]) == (turn, 3)
        await server.peer.reply(interrupt, "interrupted", turn=turn)
        await server.done("c", turn, status="interrupted", reason="by_client")

    seen = ""

    def shown() -> str:
        nonlocal seen
        seen += capsys.readouterr().out
        return seen

    assert await both(asking(server), serve) == 3
    assert shown() == "half \n"


async def test_a_second_ctrl_c_waits_for_nobody(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve() -> None:
        await server.begin()
        signal.raise_signal(signal.SIGINT)
        await server.peer.command("interrupt")
        signal.raise_signal(signal.SIGINT)

    assert await both(asking(server), serve) == 3
    assert "before the server said" in capsys.readouterr().err


async def test_ask_says_that_the_connection_is_lost(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""

    async def serve() -> None:
        nonlocal said
        await server.begin()
        server.peer.cut()
        while "connection lost; trying again" not in said:
            await anyio.lowlevel.checkpoint()
            said += capsys.readouterr().err
        signal.raise_signal(signal.SIGINT)
        await anyio.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGINT)

    assert await both(asking(server), serve) == 3
    assert said.count("connection lost") == 1


@pytest.mark.parametrize(
    ("token", "hint"), [(None, "--token"), ("wrong", "The server's log")]
)
async def test_ask_says_what_to_do_about_credentials(
    server: Double, capsys: pytest.CaptureFixture[str], token: str | None, hint: str
) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.send(
            type="error", code="unauthorized", message="No.", retryable=False
        )
        await peer.close(4401)

    server.greet = refuse
    assert await asking(server, token=token)() == 1
    assert hint in capsys.readouterr().err


async def test_chat_says_what_to_do_about_credentials(
    server: Double, tmp_path: Path
) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.send(
            type="error", code="unauthorized", message="No.", retryable=False
        )
        await peer.close(4401)

    server.greet = refuse
    keys = Keys(tmp_path)
    assert await keys.run(server.url)() == 1
    assert "Give them with --token or in WSSERVER_TOKEN." in keys.shown


def test_tools_of_a_file_are_not_left_out_in_silence(tmp_path: Path) -> None:
    arguments = ["chat", "--no-tools", "--tools", str(tmp_path / "mine.py")]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 2
    assert "--no-tools runs none, so --tools has no use" in ran.stderr


async def test_ask_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    async with double() as server:
        run = asking(server)
    assert await run() == 4
    said = capsys.readouterr().err
    assert said.startswith("no connection")
    assert "is the server running" in said


async def test_lines_come_whole_from_a_pipe() -> None:
    reader, writer = os.pipe()
    got: list[str] = []

    async def read() -> None:
        async for line in lines(reader):
            got.append(line)  # noqa: PERF401

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for piece in ("one\ntw", "o\n\u00e4"[:2], "\u00e4 end"):
            os.write(writer, piece.encode())
            await anyio.wait_writable(writer)
        os.close(writer)
    os.close(reader)
    assert got == ["one", "two", "\u00e4 end"]


def test_usage_errors_exit_with_2() -> None:
    runner = CliRunner()
    for arguments in (
        ["ask", "hi", "--url", "http://example.org"],
        ["ask", ""],
        ["ask", "-", "-"],
        ["chat", "--tools", "tools.txt"],
        ["agent"],
        ["agent", "look", "--folder", "no-such-folder"],
        ["ask", "--nonsense"],
        ["load", "--conversations", "0"],
        ["fly"],
    ):
        assert runner.invoke(app, arguments).exit_code == 2, arguments


def test_prompts_are_joined_with_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def record(prompt: str, **given: Any) -> int:
        assert given["instructions"] == "be brief"
        asked.append(prompt)
        return 0

    monkeypatch.setattr("client_demo.ask.ask", record)
    options = ["--instructions", "be brief"]
    for parts in (["Sum up:", "-"], [], ["-"], ["a", "b"]):
        ran = CliRunner().invoke(app, ["ask", *parts, *options], input="text")
        assert ran.exit_code == 0, ran.output
    assert asked == ["Sum up:\n\ntext", "text", "text", "a\n\nb"]


def test_an_agent_is_given_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: dict[str, Any] = {}

    async def record(task: str, **members: Any) -> int:
        given.update(members, task=task)
        return 3

    monkeypatch.setattr("client_demo.agent_terminal.run", record)
    command = ["agent", "look", "--folder", str(tmp_path), "--model", "m"]
    assert CliRunner().invoke(app, command).exit_code == 3
    assert (given["task"], given["folder"], given["model"]) == ("look", tmp_path, "m")
