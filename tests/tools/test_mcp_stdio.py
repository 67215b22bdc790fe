"""MCP servers that are child processes: calls, faults, restarts, their end."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.tools.mcp_rig import RAW, SDK, call, connected, context, supervised, until
from wsserver.engine.server_tools import ToolError
from wsserver.tools.mcp import server as mcp_server
from wsserver.tools.mcp import stdio as mcp_stdio
from wsserver.tools.mcp.server import McpServer, NoAnswerError


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "_FIRST_DELAY_SECONDS", 0.05)


def children() -> set[int]:
    """Returns the processes that this one has started and that still run."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if fields[1] == str(os.getpid()) and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


async def test_tools_of_a_real_server() -> None:
    async with connected(command=SDK, timeout_seconds=7.0) as server:
        add = server.find("t_add")
        assert add is not None
        assert add.description == "Adds two numbers."
        assert add.timeout_s == 7.0
        assert add.parameters is not None
        assert add.parameters["required"] == ["a", "b"]
        assert await call(server, "add", a=1, b=2) == "3"
        assert await call(server, "weather", city="Rome") == {
            "city": "Rome",
            "degrees": 21.5,
        }
        with pytest.raises(ToolError, match="weather"):
            await call(server, "weather", city="Nowhere")
        with pytest.raises(ToolError, match="validation"):
            await call(server, "add", a="x")
        shown = await call(server, "picture")
        assert shown == "Look:\n[image: image/png, 1200 bytes]"


async def test_tools_that_come_later() -> None:
    for command in (SDK, RAW):
        async with connected(command=command) as server:
            assert server.find("t_late") is None
            assert await call(server, "grow") == "grown"
            await until(lambda server=server: server.find("t_late"))


async def test_only_some_tools_and_names_that_models_take() -> None:
    async with connected(command=RAW, only=("b*", "echo"), prefix="") as server:
        assert set(server.names()) == {"babble", "bad_name_x", "echo"}
        said = await server.run("echo", {"text": "hi"}, context())
        assert said == "hi"
        assert await server.run("bad_name_x", {"text": "x"}, context()) == "x"
        with pytest.raises(ToolError, match="has no tool 'die'"):
            await server.run("die", {}, context())
        with pytest.raises(ToolError, match="no JSON object"):
            await server.run("echo", ["hi"], context())


async def test_errors_of_a_tool_and_of_the_server() -> None:
    async with connected(command=RAW) as server:
        with pytest.raises(ToolError) as failed:
            await call(server, "fail", text="no such city")
        assert str(failed.value) == "no such city"
        assert not isinstance(failed.value, NoAnswerError)
        with pytest.raises(ToolError) as failed:
            await call(server, "fail", text="")
        assert str(failed.value) == "The tool failed without saying why."
        with pytest.raises(NoAnswerError, match=r"'test' gave no answer \(No.\)"):
            await call(server, "refuse")
        assert await call(server, "babble") == "babbled"
        assert await call(server, "echo", text="still there") == "still there"


async def test_a_secret_that_a_server_was_given_and_tells_is_not_passed_on() -> None:
    with capture_logs() as lines:
        async with connected(command=RAW, environment={"WRONG_TOKEN": "HUSH"}) as it:
            with pytest.raises(NoAnswerError, match=r"gave no answer \(\*\*\*\)"):
                await call(it, "refuse")
            with pytest.raises(NoAnswerError):
                await call(it, "die")
    ended = [line for line in lines if line["event"] == "mcp_server_ended"]
    assert ended[0]["last_lines"] == ["I die. ***"]
    assert "HUSH" not in repr(lines)


async def test_calls_run_beside_each_other() -> None:
    async with connected(command=RAW) as server:
        ended: list[str] = []

        async def one(name: str, **arguments: Any) -> None:
            await call(server, name, **arguments)
            ended.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: one("wait", seconds=0.3))
            tasks.start_soon(lambda: one("echo", text="x"))
        assert ended == ["echo", "wait"]


async def test_a_server_inherits_little() -> None:
    environment = {"MINE": "1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-secret")
        async with connected(command=RAW, environment=environment) as server:
            seen = await call(server, "whoami")
    assert seen == {"PATH": True, "MINE": True, "OPENAI_API_KEY": False}


async def test_progress_is_passed_on() -> None:
    steps: list[int] = []
    async with connected(command=RAW) as server:
        progress = context(lambda: steps.append(1))
        assert await server.run("t_steps", {"count": 2}, progress) == "stepped"
    assert len(steps) == 2


async def test_a_server_is_told_of_a_call_that_is_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(command=(*RAW, "--log", str(log))) as server:
        with anyio.move_on_after(0.3):
            await call(server, "wait", seconds=30)
        await until(lambda: "notifications/cancelled" in log.read_text())
        await until(lambda: log.read_text().count("tools/list ") == 4)
        assert await call(server, "echo", text="x") == "x"


async def test_a_server_that_dies_is_started_again() -> None:
    async with connected(command=RAW) as server:
        with pytest.raises(NoAnswerError):
            await call(server, "die")
        assert server.find("t_echo") is not None
        if not server.connected:
            with pytest.raises(ToolError, match="can't be reached"):
                await call(server, "echo", text="x")
        await until(lambda: server.connected)
        assert await call(server, "echo", text="x") == "x"


async def test_a_server_that_is_killed_while_idle_is_started_again() -> None:
    before = children()
    async with connected(command=RAW) as server:
        (child,) = children() - before
        os.kill(child, signal.SIGKILL)
        await until(lambda: child not in children())
        await until(lambda: server.connected and children() - before)
        assert await call(server, "echo", text="x") == "x"


async def test_a_message_without_end_ends_the_connection_only() -> None:
    async with connected(command=RAW) as server:
        with pytest.raises(NoAnswerError):
            await call(server, "endless")
        await until(lambda: server.connected)
        assert len(await call(server, "huge", size=2_000_000)) == 2_000_000


async def test_a_server_that_hangs_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_server, "CHECK_SECONDS", 0.3)
    async with connected(command=RAW) as server:
        with anyio.move_on_after(0.2):
            await call(server, "deaf")
        await until(lambda: not server.connected)
        await until(lambda: server.connected)
        assert await call(server, "echo", text="x") == "x"


async def test_cancelling_is_quick_when_the_server_reads_nothing() -> None:
    async with connected(command=RAW) as server:
        with anyio.move_on_after(0.1):
            await call(server, "deaf")
        began = anyio.current_time()
        for _ in range(20):
            with anyio.move_on_after(0.01):
                await call(server, "echo", text="x" * 100_000)
        assert anyio.current_time() - began < 2
        began = anyio.current_time()
    assert anyio.current_time() - began < 2


@pytest.mark.parametrize(
    "command", [("/no/such/command",), (*RAW, "--refuse"), ("/bin/cat",)], ids=str
)
async def test_a_server_that_never_starts(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "CONNECT_SECONDS", 0.5)
    reasons: list[str] = []
    monkeypatch.setattr(
        mcp_server.log, "warning", lambda _, **members: reasons.append(members["why"])
    )
    async with supervised(command=command) as server:
        await until(lambda: reasons)
        assert not server.connected
        if command == ("/no/such/command",):
            assert "No such file or directory: '/no/such/command'" in reasons[0]
        found = server.find("t_echo")
        assert found is not None
        assert found.parameters is None
        assert server.find("echo") is None
        with pytest.raises(ToolError, match="can't be reached at the moment"):
            await call(server, "echo", text="x")


async def test_no_process_is_left() -> None:
    before = children()
    async with connected(command=RAW) as server:
        with anyio.move_on_after(0.1):
            await call(server, "deaf")
        assert children() - before
    await until(lambda: children() == before)


async def test_a_server_that_will_not_end_is_killed() -> None:
    before = children()
    async with connected(command=(*RAW, "--stay")) as server:
        assert await call(server, "echo", text="x") == "x"
        began = anyio.current_time()
    assert anyio.current_time() - began < 2
    await until(lambda: children() == before)


async def test_a_busy_machine_has_time_to_kill_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_stdio, "_END_SECONDS", 0)
    with capture_logs() as lines:
        async with connected(command=RAW):
            pass
    (ended,) = [line for line in lines if line["event"] == "mcp_server_ended"]
    assert ended["status"] is not None, "nothing is left to whoever closes the loop"


async def test_a_server_without_tools_has_none() -> None:
    async with connected(command=(*RAW, "--idle")) as server:
        assert list(server.names()) == []


async def test_a_result_that_is_none_is_no_answer() -> None:
    async with connected(command=RAW) as server:
        with pytest.raises(
            NoAnswerError, match=r"what it said is not valid: content: Input"
        ):
            await call(server, "nonsense")
        assert await call(server, "echo", text="x") == "x"


async def test_what_is_cut_or_of_an_unknown_kind_takes_the_rest_not_away() -> None:
    async with connected(command=RAW) as server:
        assert await call(server, "half") == "cut \ufffd"
        assert await call(server, "video") == (
            "see:\n[video: can't be shown]\n[something: can't be shown]\n"
            "[text: can't be shown]"
        )


async def test_an_answer_that_can_not_be_read_is_no_answer_at_once() -> None:
    async with connected(command=RAW) as server:
        with pytest.raises(NoAnswerError, match="not valid: Invalid JSON: recursion"):
            await call(server, "deep")
        assert await call(server, "echo", text="x") == "x"


def test_delays_grow_to_a_limit() -> None:
    delays = [mcp_server.delay_seconds(failures) for failures in range(1, 15)]
    assert delays == sorted(delays)
    assert delays[0] == 0.05
    assert delays[-1] == 30


async def test_a_tool_that_no_model_can_be_told_of_is_left_out() -> None:
    async with connected(command=RAW, prefix="t_" * 30) as server:
        assert set(server.names()) == {
            "t_" * 30 + name
            for name in (
                "echo",
                "fail",
                "wait",
                "huge",
                "deaf",
                "grow",
                "die",
                "half",
                "deep",
            )
        }


async def test_two_servers_do_not_disturb_each_other() -> None:
    async with connected(command=RAW) as one, connected(command=RAW) as other:
        with pytest.raises(NoAnswerError):
            await call(one, "die")
        assert await call(other, "echo", text="x") == "x"
        assert isinstance(other, McpServer)


async def test_tools_that_are_wrong_take_none_of_the_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = tmp_path / "messages"
    told: list[tuple[str, str, str]] = []

    def warning(event: str, *, server: str, why: str, tool: str = "") -> None:
        assert event == ("mcp_tool_left_out" if tool else "mcp_list_faulty")
        told.append((server, tool, why))

    monkeypatch.setattr(mcp_server.log, "warning", warning)
    async with connected(command=(*RAW, "--odd", "--log", str(messages))) as server:
        assert set(server.names()) == {"t_icons", "t_titled", "t_echo"}
        titled = server.find("t_titled")
        assert titled is not None
        assert titled.description == "It."
        assert await call(server, "echo", text="x") == "x"
    assert messages.read_text().count("tools/list ") == 2
    assert {name for name, _, _ in told} == {"test"}
    enum = " valid under any of the schemas listed in the 'anyOf' keyword"
    assert [(tool, why) for _, tool, why in told] == [
        ("", "nextCursor: it leads back; what comes after is left out"),
        ("no_schema", "inputSchema: field required"),
        ("no_object", "inputSchema.type: input should be 'object'"),
        ("#3", "name: field required"),
        ("#4", "input should be a valid dictionary or instance of Tool"),
        (
            "word",
            "inputSchema.properties.x.dict[str,any]: input should be a valid dictionary",
        ),
        ("told", "description: input should be a valid string"),
        (
            "int",
            "inputSchema is no JSON Schema: $['properties']['x']['type']: \"int\" is not"
            + enum,
        ),
    ]


async def test_messages_in_batches() -> None:
    async with connected(command=(*RAW, "--batch")) as server:
        assert await call(server, "echo", text="x") == "x"
        with pytest.raises(NoAnswerError, match=r"\(No\.\)"):
            await call(server, "refuse")
