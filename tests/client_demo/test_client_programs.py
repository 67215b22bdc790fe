"""ask, chat, load and the command line, over real sockets, signals and pipes."""

import io
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from client_demo.__main__ import app
from client_demo.ask import ask
from client_demo.keyboard import lines
from client_demo.load import load, show
from client_demo.terminal import Terminal
from tests.client_demo.double import Double, double


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


async def both(
    run: Callable[[], Awaitable[int]], serve: Callable[[], Awaitable[None]]
) -> int:
    """Runs a program beside the server's side of it; returns the exit code."""
    codes: list[int] = []

    async def program() -> None:
        codes.append(await run())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program)
            await serve()
    return codes[0]


async def begin(server: Double) -> int:
    await server.connection(1)
    send = await server.peer.command("send")
    return await server.start("c", await server.message("c", send))


async def serve_answer(server: Double, *texts: str) -> None:
    await server.connection(1)
    await server.answer("c", *texts)


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
        turn = await begin(server)
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
        turn = await begin(server)
        await server.done("c", turn, text={"bytes": 1, "crc32": 1})

    assert await both(asking(server), lie) == 1
    assert "not the text" in capsys.readouterr().err


async def test_ctrl_c_stops_the_answer_at_what_was_shown(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve() -> None:
        turn = await begin(server)
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
        await begin(server)
        signal.raise_signal(signal.SIGINT)
        await server.peer.command("interrupt")
        signal.raise_signal(signal.SIGINT)

    assert await both(asking(server), serve) == 3
    assert "before the server said" in capsys.readouterr().err


async def test_ask_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    async with double() as server:
        run = asking(server)
    assert await run() == 1
    assert "no connection" in capsys.readouterr().err


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


class Keys:
    """A terminal's two ends."""

    def __init__(self) -> None:
        self.console = Console(file=io.StringIO(), width=100, color_system=None)
        reader, self._writer = os.pipe()
        self.terminal = Terminal(self.console, descriptor=reader)

    @property
    def shown(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        lines = self.console.file.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def type(self, line: str) -> None:
        os.write(self._writer, line.encode() + b"\n")

    def end(self) -> None:
        os.close(self._writer)

    async def until(self, text: str) -> None:
        with anyio.fail_after(5):
            while text not in self.shown:
                await anyio.wait_writable(self._writer)

    def run(self, server: Double) -> Callable[[], Awaitable[int]]:
        return partial(
            self.terminal.run, url=server.url, token=None, model=None, conversation="c"
        )


async def test_chat_shows_history_answers_and_times(server: Double) -> None:
    keys = Keys()

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        await server.answer("c", "Some *words*.\n\nAnd ", "more.\x1b[2J")
        await keys.until("first token 20 ms")
        keys.end()

    assert await both(keys.run(server), serve) == 0
    assert "Some words.\n\nAnd more.[2J\n" in keys.shown
    again = Keys()

    async def leave() -> None:
        await again.until("> hello")
        again.type("/quit")

    assert await both(again.run(server), leave) == 0
    assert "And more.[2J" in again.shown


async def test_ctrl_c_stops_the_answer_and_then_leaves(server: Double) -> None:
    keys = Keys()

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        turn = await begin(server)
        await server.say("c", turn, "half\n\n", "way\n")
        await keys.until("half")
        signal.raise_signal(signal.SIGINT)
        interrupt = await server.peer.command("interrupt")
        assert interrupt["turn"] == turn
        await server.peer.reply(interrupt, "interrupted", turn=turn)
        await server.done("c", turn, status="interrupted", reason="by_client")
        await keys.until("interrupted (by_client)")
        await keys.until(">")
        while keys.terminal._turn is not None:
            await anyio.lowlevel.checkpoint()
        signal.raise_signal(signal.SIGINT)

    assert await both(keys.run(server), serve) == 0


async def test_chat_shows_what_happens(server: Double) -> None:
    keys = Keys()

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        turn = await begin(server)
        await server.peer.send(
            type="waiting", conversation="c", turn=turn, phase="waiting_first_token",
            elapsed_ms=10_000,
        )  # fmt: skip
        await server.event("c", "reasoning", turn=turn, text="hm")
        await server.event(
            "c", "tool_call", turn=turn, call="k", name="clock", arguments={"z": 1},
            batch=0, index=0, deadline_at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        await server.event(
            "c", "tool_result", turn=turn, call="k", status="ok", output="noon", by="me"
        )
        await server.peer.send(
            type="goaway", deadline_ms=1, reconnect_after_ms=0, reason="restart"
        )
        await keys.until("the server goes away: restart")
        await server.peer.close(4601)
        await server.connection(2)
        await keys.until("connected again")
        await server.event(
            "c", "error", turn=turn, code="internal", message="sorry", retryable=True
        )
        await server.done("c", turn, status="failed")
        await keys.until("failed (None)")
        keys.type("again")
        await server.peer.refuse(await server.peer.command("send"), "queue_full")
        await keys.until("queue_full: because")
        keys.end()

    assert await both(keys.run(server), serve) == 0
    for said in ("calls clock {'z': 1}", "ok: noon", "internal: sorry"):
        assert said in keys.shown


async def test_load_counts_what_happened(
    server: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve() -> None:
        await server.connection(1)
        sends = [await server.peer.command("send") for _ in range(3)]
        await server.peer.refuse(sends.pop(), "too_many_turns")
        for send, lie in zip(
            sends, ({}, {"text": {"bytes": 9, "crc32": 9}}), strict=True
        ):
            name = send["conversation"]
            turn = await server.start(name, await server.message(name, send))
            await server.say(name, turn, "a", "b", "c")
            await server.done(name, turn, **lie)
        for _ in range(2):
            await server.peer.reply(await server.peer.command("delete"), "deleted")

    async def run() -> int:
        report = await load(
            server.url, token=None, conversations=3, sockets=1, turns=1, prompt="hi",
            model=None,
        )  # fmt: skip
        show(report, Console(file=sys.stdout, width=100))
        assert report.statuses == {"completed": 2, "too_many_turns": 1}
        assert (report.unproven, report.characters, report.disconnects) == (1, 6, 0)
        assert (report.ttft.count, report.total.count) == (2, 2)
        assert 0 <= report.ttft.p50 <= report.ttft.max <= report.total.max
        assert not report.clean
        return 0

    assert await both(run, serve) == 0
    assert "1 unproven" in capsys.readouterr().out


def test_usage_errors_exit_with_2() -> None:
    runner = CliRunner()
    for arguments in (
        ["ask", "hi", "--url", "http://example.org"],
        ["ask", ""],
        ["ask", "--nonsense"],
        ["load", "--conversations", "0"],
        ["fly"],
    ):
        assert runner.invoke(app, arguments).exit_code == 2, arguments
