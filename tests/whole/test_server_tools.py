"""Tools of client and server in one conversation, through the whole server."""

import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from tests.fakes.replies import call_events, streamed, text_events
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Frame, Wire, wire
from tests.tools.mcp_rig import RAW, http_server, until

TOOLS = '''
import pathlib
import threading
import time

from wsserver.tools import ToolContext

FOLDER = pathlib.Path(__file__).parent


def held(name: str, context: ToolContext) -> dict[str, str]:
    """Waits for a file."""
    with (FOLDER / "held.log").open("a") as log:
        log.write(f"{name}\\n")
    while not (FOLDER / "release").exists():
        time.sleep(0.01)
        context.progress()
    return {"said": f"{name} to {context.principal}"}


def huge(size: int) -> str:
    return "x" * size


def stuck() -> None:
    threading.Event().wait()


def fails() -> None:
    raise ValueError


def odd() -> list:
    return [b"bytes", {"a"}, 2**70]


async def broken() -> object:
    return object()
'''
ASK = {"name": "ask", "parameters": {"type": "object"}}


def asking(*calls: tuple[str, Any]) -> Reply:
    """An answer that calls tools."""
    made = [
        {"id": f"up{n}", "name": name, "arguments": orjson.dumps(given).decode()}
        for n, (name, given) in enumerate(calls)
    ]
    return streamed(call_events(*made))


def saying(text: str) -> Reply:
    return streamed(text_events(text))


@asynccontextmanager
async def serving(
    folder: Path, upstream: FakeUpstream, *flags: str, mcp: str = ""
) -> AsyncGenerator[ServerProcess]:
    """A server that has the tools above, and MCP servers."""
    (folder / "whole_tools.py").write_text(TOOLS)
    names = ("held", "huge", "stuck", "fails", "odd", "broken")
    tables = [f'[tools.{name}]\ncall = "whole_tools:{name}"\n' for name in names]
    config = folder / "wsserver.toml"
    config.write_text("\n".join([*tables, mcp]))
    env = {
        "OPENAI_BASE_URL": upstream.base_url,
        "OPENAI_API_KEY": "sk-test",
        "PYTHONPATH": str(folder),
    }
    flags = ("--config", str(config), *(flags or ("--store", "memory")))
    async with server(*flags, folder=folder, env=env) as running:
        yield running


def raw_mcp(log: Path) -> str:
    return f"[mcp.raw]\ncommand = {orjson.dumps([*RAW, '--log', str(log)]).decode()}\n"


async def begin(client: Wire, *tools: Any, handles: tuple[str, ...] = ()) -> int:
    """Configures the tools and sends a message; returns the turn."""
    listed = [{"name": tool} if isinstance(tool, str) else tool for tool in tools]
    await client.open("c", handles=list(handles), config={"tools": listed})
    return await say(client)


async def say(client: Wire) -> int:
    reply = await client.command("send", conversation="c", content="hi")
    assert reply["ok"], reply
    return reply["turn"]


def of(client: Wire, kind: str) -> list[Frame]:
    return [event for event in client.copies["c"].events if event["type"] == kind]


def requests(client: Wire) -> list[Frame]:
    return [frame for frame in client.controls if frame["type"] == "tool_request"]


def told(upstream: FakeUpstream, number: int) -> list[str]:
    """Returns the outputs that a request to the model holds."""
    messages = upstream.requests[number].json["messages"]
    return [m["content"] for m in messages if m["role"] == "tool"]


@pytest.mark.timeout(60)
async def test_a_client_tool_a_python_tool_and_mcp_tools_in_one_turn(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    """With a disconnect in the middle."""
    log = tmp_path / "raw.log"
    upstream.script(
        asking(
            ("ask", {"what": "colour"}),
            ("held", {"name": "Ann"}),
            ("docs_add", {"a": 1, "b": 2}),
            ("raw_echo", {"text": "hello"}),
        ),
        saying("All done."),
    )
    copies: dict[str, Copy] = defaultdict(Copy)
    async with http_server() as http:
        mcp = f'[mcp.docs]\nurl = "{http.url}"\n\n{raw_mcp(log)}'
        async with serving(tmp_path, upstream, mcp=mcp) as running:
            await connected(running, "docs", "raw")
            async with wire(running.url, copies) as client:
                turn = await begin(
                    client, ASK, "held", "docs_add", "raw_echo", handles=("ask", "held")
                )
                await client.until(lambda: requests(client))
                await client.until(lambda: len(of(client, "tool_result")) == 2)
                (first,) = requests(client)
                assert (first["name"], first["redelivered"]) == ("ask", False)
            # Nobody is connected now; the Python tool ends meanwhile.
            (tmp_path / "release").touch()
            async with wire(running.url, copies) as client:
                opened = await client.open("c", handles=["ask"])
                assert "server_tools" in client.welcome["features"]
                assert {"held", "docs_add", "raw_echo"} <= set(opened["server_tools"])
                await client.until(lambda: len(of(client, "tool_result")) == 3)
                await client.until(lambda: requests(client))
                (again,) = requests(client)
                assert (again["call"], again["redelivered"]) == (first["call"], True)
                reply = await client.command(
                    "tool_result",
                    conversation="c",
                    call=again["call"],
                    output={"colour": "red"},
                )
                assert reply["outcome"] == "accepted"
                assert (await client.done("c", turn))["status"] == "completed"
                calls, found = of(client, "tool_call"), of(client, "tool_result")
    assert [call["name"] for call in calls] == ["ask", "held", "docs_add", "raw_echo"]
    settled = {event["call"]: event for event in found}
    assert len(found) == len(settled) == 4
    results = [settled[call["call"]] for call in calls]
    assert [result["status"] for result in results] == ["ok"] * 4
    assert [result["by"] for result in results[1:]] == ["server"] * 3
    assert results[0]["by"] != "server"
    principal = results[0]["by"]
    assert len(upstream.requests) == 2
    assert told(upstream, 1) == [
        '{"colour":"red"}',
        f'{{"said":"Ann to {principal}"}}',
        "3",
        "hello",
    ]
    assert (tmp_path / "held.log").read_text() == "Ann\n"
    assert log.read_text().count("tools/call") == 1
    names = [t["function"]["name"] for t in upstream.requests[0].json["tools"]]
    assert names == ["ask", "held", "docs_add", "raw_echo"]
    schema = upstream.requests[0].json["tools"][2]["function"]["parameters"]
    assert schema["required"] == ["a", "b"]


async def connected(running: ServerProcess, *names: str) -> None:
    """Waits until MCP servers have listed their tools."""
    for name in names:
        listed = re.compile(rf"mcp_tools .*server={name}\b")
        await until(lambda listed=listed: listed.search(running.log))


@pytest.mark.timeout(60)
async def test_t06_a_huge_output_is_cut_and_the_chat_goes_on(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    size = {"size": 2_000_000}
    upstream.script(
        asking(("huge", size), ("raw_huge", size)), saying("a"), saying("b")
    )
    log = tmp_path / "raw.log"
    async with serving(tmp_path, upstream, mcp=raw_mcp(log)) as running:
        await connected(running, "raw")
        async with wire(running.url) as client:
            turn = await begin(client, "huge", "raw_huge")
            assert (await client.done("c", turn))["status"] == "completed"
            limit = client.welcome["limits"]["tool_output_bytes"]
            turn = await say(client)
            assert (await client.done("c", turn))["status"] == "completed"
            for event in of(client, "tool_result"):
                assert event["status"] == "ok"
                assert event["output"].endswith("of its 2000000 characters.]")
                assert len(orjson.dumps(event["output"])) <= limit
            sizes = [len(orjson.dumps(frame)) for frame in client.frames]
            assert max(sizes) <= client.welcome["limits"]["frame_bytes"]
    assert len(upstream.requests[2].body) < 3 * limit


async def test_t08_t09_t10_each_call_gets_its_one_result(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    names = ("fails", "odd", "broken", "raw_echo", "raw_fail")
    given = [(name, {}) for name in names]
    upstream.script(asking(*given), saying("a"))
    missing = '[mcp.raw]\ncommand = ["/no/such/program"]\n'
    async with serving(tmp_path, upstream, mcp=missing) as running:
        async with wire(running.url) as client:
            turn = await begin(client, *names)
            assert (await client.done("c", turn))["status"] == "completed"
            settled = {event["call"]: event for event in of(client, "tool_result")}
            found = [settled[call["call"]] for call in of(client, "tool_call")]
        assert [result["status"] for result in found] == [
            "error",
            "ok",
            "error",
            "error",
            "error",
        ]
        outputs = told(upstream, 1)
        assert outputs[0] == "The tool failed without saying why."
        assert orjson.loads(outputs[1].replace(str(2**70), "1")) == [
            "Ynl0ZXM=",
            ["a"],
            1,
        ]
        assert outputs[2].endswith("as JSON: object is no JSON type")
        down = "The MCP server 'raw' can't be reached at the moment."
        assert outputs[3:] == [down, down]
        assert await running.terminate() == 0


async def test_an_interrupt_settles_calls_that_run(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.script(asking(("stuck", {}), ("raw_wait", {"seconds": 60})), saying("a"))
    log = tmp_path / "raw.log"
    async with serving(tmp_path, upstream, mcp=raw_mcp(log)) as running:
        await connected(running, "raw")
        async with wire(running.url) as client:
            turn = await begin(client, "stuck", "raw_wait")
            await client.until(lambda: len(of(client, "tool_call")) == 2)
            await until(lambda: "tools/call" in log.read_text())
            reply = await client.command("interrupt", conversation="c")
            assert reply["outcome"] == "interrupted"
            assert (await client.done("c", turn))["status"] == "interrupted"
            statuses = [event["status"] for event in of(client, "tool_result")]
            assert statuses == ["cancelled", "cancelled"]
            turn = await say(client)
            assert (await client.done("c", turn))["status"] == "completed"
        await until(lambda: "notifications/cancelled" in log.read_text())


@pytest.mark.timeout(60)
async def test_tools_that_hang_touch_nobody_else_and_no_exit(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    rounds = 10
    hanging = asking(*[("stuck", {})] * 4, ("raw_deaf", {}))
    upstream.script(
        lambda request: (
            hanging
            if request.json["messages"][-1]["content"] == "hang"
            else saying("a")
        )
    )
    log = tmp_path / "raw.log"
    flags = ("--store", "memory", "--drain-seconds", "0.5")
    async with serving(tmp_path, upstream, *flags, mcp=raw_mcp(log)) as running:
        await connected(running, "raw")
        async with wire(running.url) as client:
            tools = [{"name": "stuck"}, {"name": "raw_deaf"}]
            for number in range(rounds):
                name = f"hang{number}"
                await client.open(name, config={"tools": tools})
                await client.command("send", conversation=name, content="hang")
            await client.until(
                lambda: (
                    sum(
                        event["type"] == "tool_call"
                        for copy in client.copies.values()
                        for event in copy.events
                    )
                    == 5 * rounds
                )
            )
            await client.open("c")
            for _ in range(5):
                began = anyio.current_time()
                turn = await say(client)
                await client.done("c", turn)
                assert anyio.current_time() - began < 3
            began = anyio.current_time()
            running.signal(signal.SIGTERM)
            assert await running.wait() == 0
            assert anyio.current_time() - began < 0.5 + 2


@pytest.mark.timeout(60)
async def test_a_call_that_a_crash_cut_off_is_not_run_again(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.script(asking(("held", {"name": "Ann"})), saying("b"))
    copies: dict[str, Copy] = defaultdict(Copy)
    sqlite = ("--store", "sqlite")
    async with (
        serving(tmp_path, upstream, *sqlite) as running,
        wire(running.url, copies) as client,
    ):
        turn = await begin(client, "held")
        await client.until(lambda: of(client, "tool_call"))
        await until((tmp_path / "held.log").exists)
        await running.kill()
    (tmp_path / "release").touch()
    async with (
        serving(tmp_path, upstream, *sqlite) as running,
        wire(running.url, copies) as client,
    ):
        await client.open("c")
        done = await client.done("c", turn)
        assert (done["status"], done["reason"]) == ("incomplete", "server_restarted")
        (result,) = of(client, "tool_result")
        assert (result["status"], result["by"]) == ("cancelled", "server")
        turn = await say(client)
        assert (await client.done("c", turn))["status"] == "completed"
    assert (tmp_path / "held.log").read_text() == "Ann\n"
    assert told(upstream, 1) == [result["output"]]


def test_bad_tools_end_the_start_with_one_line(tmp_path: Path) -> None:
    config = tmp_path / "wsserver.toml"
    config.write_text('[tools.a]\ncall = "no_such_module:f"\n')
    command = [sys.executable, "-m", "wsserver", "serve", "--port", "0"]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--store", "memory", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("wsserver: tools.a: no_such_module:f: No module named")
