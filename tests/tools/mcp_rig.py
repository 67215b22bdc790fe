"""MCP servers that really run, and what calls their tools."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from wsserver.engine.server_tools import ToolContext
from wsserver.tools.mcp.server import McpServer
from wsserver.tools.mcp.settings import McpSettings

HERE = Path(__file__).parent
RAW = (sys.executable, str(HERE / "raw_mcp.py"))
SDK = (sys.executable, str(HERE / "sdk_mcp.py"), "stdio")
WAIT_SECONDS = 15.0


def context(progress: Callable[[], None] = lambda: None) -> ToolContext:
    return ToolContext(
        conversation="c", principal="alice", call="call_1.0", progress=progress
    )


async def until(true: Callable[[], Any], seconds: float = WAIT_SECONDS) -> None:
    with anyio.fail_after(seconds):
        while not true():
            await anyio.sleep(0.01)


@asynccontextmanager
async def supervised(**members: Any) -> AsyncGenerator[McpServer]:
    """Runs the supervision of a server; its tools begin with `t_`."""
    server = McpServer(McpSettings(**{"name": "test", "prefix": "t_", **members}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.supervise)
        yield server
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(**members: Any) -> AsyncGenerator[McpServer]:
    """Runs a server until it can be called."""
    async with supervised(**members) as server:
        await until(lambda: server.connected)
        yield server


async def call(server: McpServer, name: str, **arguments: Any) -> Any:
    with anyio.fail_after(WAIT_SECONDS):
        return await server.run(f"t_{name}", arguments, context())


class HttpProcess:
    """The SDK's server behind a URL."""

    def __init__(self, process: anyio.abc.Process, url: str) -> None:
        self.process = process
        self.url = url

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].split("/")[0])

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def http_server(
    port: int = 0, *, json: bool = False
) -> AsyncGenerator[HttpProcess]:
    command = [sys.executable, str(HERE / "sdk_mcp.py"), "http", str(port)]
    process = await anyio.open_process(command + ["json"] * json, stderr=None)
    assert process.stdout is not None
    try:
        lines = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(WAIT_SECONDS):
            url = await lines.receive_until(b"\n", 4096)
        yield HttpProcess(process, url.decode().strip())
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
