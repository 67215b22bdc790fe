"""The rows: what is compared, how each is started, and why one is left out."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tests.bench.process import Process, spawned
from tests.bench.relays import nginx

Dialect = Literal["wsserver", "json", "socketio", "sse"]

_RELAYS = Path(__file__).parent / "relays"
_NPM_SECONDS = 180.0
_MARKS = frozenset({"floor", "floor-sleep", "plain-sdk"})
_LIMITS = {
    "OPENAI_API_KEY": "none",
    "WSSERVER_MAX_ACTIVE_TURNS": "100000",
    "WSSERVER_MAX_CONNECTIONS": "100000",
    "WSSERVER_UPSTREAM_POOL_SIZE": "4096",
    "WSSERVER_DETACH_GRACE_SECONDS": "0",
    "WSSERVER_LOG_LEVEL": "error",
}


class Row(Struct, frozen=True, kw_only=True):
    """Something that relays streams.

    Attributes:
        name: What the tables call it.
        what: What it is, in a line.
        dialect: How clients speak to it.
        command: What starts it; the upstream's port is put in place of `{upstream}`.
            Empty for the mock upstream itself.
        modules: Python modules that it needs beyond the server's.
        needs: A program that it needs: `node` with packages of npm, or `nginx`.
        default: Whether it runs when no rows are named.
    """

    name: str
    what: str
    dialect: Dialect = "json"
    command: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    needs: Literal["node", "nginx"] | None = None
    default: bool = True

    @property
    def ours(self) -> bool:
        """Whether it is this project's server."""
        return self.dialect == "wsserver"

    @property
    def has_upstream(self) -> bool:
        """Whether it relays at all."""
        return not self.name.startswith("floor")

    @property
    def rounds(self) -> int:
        """At most so many: the ratios of ours to a few others are what matters most."""
        return 9 if self.ours or self.name in _MARKS else 2


def _relay(module: str, *arguments: str) -> tuple[str, ...]:
    python = sys.executable
    return (python, "-m", f"tests.bench.relays.{module}", "{upstream}", *arguments)


def _ours(store: str) -> tuple[str, ...]:
    serve = ("serve", "--port", "0", "--store", store)
    return (sys.executable, "-m", "wsserver", *serve)


ROWS = (
    Row(
        name="upstream",
        what="the mock upstream without a relay: what the rig itself takes",
        dialect="sse",
    ),
    Row(
        name="floor",
        what="websockets server that only sends, one timer for all, no upstream",
        command=_relay("floor"),
    ),
    Row(
        name="floor-sleep",
        what="the same with a task per stream that sleeps between tokens",
        command=_relay("floor", "sleep"),
    ),
    Row(
        name="nginx",
        what="nginx passing SSE through",
        dialect="sse",
        command=_relay("nginx"),
        needs="nginx",
    ),
    Row(
        name="wsserver-memory",
        what="this server, `--store memory`",
        dialect="wsserver",
        command=_ours("memory"),
    ),
    Row(
        name="wsserver-sqlite",
        what="this server, `--store sqlite`",
        dialect="wsserver",
        command=_ours("sqlite"),
    ),
    Row(
        name="node-ws",
        what="Node `ws` and the official openai SDK",
        command=("node", str(_RELAYS / "node_ws.cjs"), "{upstream}"),
        needs="node",
    ),
    Row(
        name="raw-aiohttp",
        what="websockets, openai SDK over aiohttp, raw lines, orjson",
        command=_relay("raw_lines", "aiohttp"),
        modules=("aiohttp",),
    ),
    Row(
        name="raw-httpx2",
        what="the same over httpx2, the SDK's default",
        command=_relay("raw_lines", "httpx2"),
    ),
    Row(
        name="plain-sdk",
        what="websockets, openai SDK, plain loop over its stream",
        command=_relay("plain_sdk", "httpx2"),
    ),
    Row(
        name="plain-sdk-aiohttp",
        what="the same over aiohttp",
        command=_relay("plain_sdk", "aiohttp"),
        modules=("aiohttp",),
        default=False,
    ),
    Row(
        name="socketio",
        what="python-socketio and the openai SDK",
        dialect="socketio",
        command=_relay("socketio_sdk"),
        modules=("socketio", "uvicorn"),
    ),
    Row(
        name="fastapi-sse",
        what="FastAPI's server-sent events and the openai SDK",
        dialect="sse",
        command=_relay("fastapi_sse"),
        modules=("fastapi", "uvicorn"),
    ),
)
BY_NAME = {row.name: row for row in ROWS}


async def missing(row: Row) -> str | None:
    """Returns why a row can't run here, after installing what npm can install."""
    absent = [module for module in row.modules if find_spec(module) is None]
    if absent:
        install = "pip install -r tests/bench/requirements.txt"
        return f"{', '.join(absent)} not installed; {install}"
    if row.needs == "nginx" and nginx.find() is None:
        return "nginx is not installed; with Debian: apt-get install nginx-light"
    if row.needs == "node":
        if shutil.which("node") is None or shutil.which("npm") is None:
            return "node or npm is not installed"
        return await _npm_install()
    return None


def _node_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "wsserver-bench"


async def _npm_install() -> str | None:
    folder = _node_folder()
    wanted = (_RELAYS / "package.json").read_text("utf-8")
    made = folder / "package.json"
    if (folder / "node_modules" / "openai").exists() and made.read_text() == wanted:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    made.write_text(wanted)
    npm = await asyncio.create_subprocess_exec(
        *("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        code = await asyncio.wait_for(npm.wait(), _NPM_SECONDS)
    except TimeoutError:
        npm.kill()
        code = await npm.wait()
    return None if code == 0 else f"npm install failed with {code}"


@asynccontextmanager
async def started(row: Row, upstream: Process) -> AsyncGenerator[Process]:
    """Starts a row's process.

    Raises:
        StartError: It does not start.
    """
    if not row.command:
        yield upstream
        return
    env = _LIMITS | {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream.port}/v1",
        "NODE_PATH": str(_node_folder() / "node_modules"),
    }
    command = [part.format(upstream=upstream.port) for part in row.command]
    async with spawned(command, env) as process:
        yield process


@asynccontextmanager
async def mock_upstream() -> AsyncGenerator[Process]:
    """Starts the mock upstream."""
    command = [sys.executable, "-m", "tests.bench.mock_upstream"]
    async with spawned(command, {}) as process:
        yield process
