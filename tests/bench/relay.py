"""Starts the processes of a measurement and reads their processor time."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")

OURS = {
    "wsserver-memory": ["--store", "memory"],
    "wsserver-sqlite": ["--store", "sqlite"],
}
PLAIN = {"plain-sdk": "plain_sdk", "floor": "floor"}


class Process:
    """A process that printed its port.

    Attributes:
        port: Where it listens on loopback.
        pid: Its process id.
    """

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    def cpu_seconds(self) -> float:
        """Returns the processor time it has used, threads included."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(stat[11]) + int(stat[12])) / TICKS

    def rss_bytes(self) -> int:
        """Returns how much memory it holds."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def spawned(*command: str, env: dict[str, str]) -> AsyncGenerator[Process]:
    """Runs a Python module that prints its port, or a line that ends with it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | env,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        port = line.decode().strip().removesuffix("/v1/chat").rpartition(":")[2]
        yield Process(int(port), process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def upstream() -> AsyncGenerator[Process]:
    """Starts the mock upstream."""
    async with spawned("tests.bench.mock_upstream", env={}) as process:
        yield process


@asynccontextmanager
async def relay(name: str, upstream_port: int) -> AsyncGenerator[Process]:
    """Starts one of the relays that are compared."""
    if name in PLAIN:
        module = f"tests.bench.relays.{PLAIN[name]}"
        async with spawned(module, str(upstream_port), env={}) as process:
            yield process
        return
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream_port}/v1",
            "OPENAI_API_KEY": "none",
            "XDG_STATE_HOME": folder,
            "WSSERVER_MAX_ACTIVE_TURNS": "100000",
            "WSSERVER_MAX_CONNECTIONS": "100000",
            "WSSERVER_LOG_LEVEL": "error",
        }
        command = ["wsserver", "serve", "--port", "0", *OURS[name]]
        async with spawned(*command, env=env) as process:
            yield process
