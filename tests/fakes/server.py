"""The real server as a process of its own, as a user starts it."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

START_SECONDS = 20.0
STOP_SECONDS = 15.0


class ServerProcess:
    """One process; `log` holds its standard error after it has ended.

    Attributes:
        url: Where clients connect.
        pid: The process id.
    """

    def __init__(self, process: anyio.abc.Process, url: str, stderr: Path) -> None:
        self.url = url
        self.pid = process.pid
        self._process = process
        self._stderr = stderr

    @property
    def http(self) -> str:
        """The address of the plain HTTP pages, without a slash at the end."""
        return self.url.replace("ws://", "http://").removesuffix("/v1/chat")

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._stderr.read_text()

    def signal(self, number: int) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    async def kill(self) -> None:
        """Ends it as a crash does (`kill -9`)."""
        self._process.kill()
        await self._process.wait()

    async def terminate(self) -> int:
        """Asks it to drain; returns its exit code."""
        self._process.terminate()
        return await self.wait()

    async def wait(self) -> int:
        """Waits for its end; returns its exit code."""
        with anyio.fail_after(STOP_SECONDS):
            return await self._process.wait()

    def rss_bytes(self) -> int:
        """How much memory it holds."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """How much processor time it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def server(
    *flags: str,
    folder: Path,
    env: dict[str, str] | None = None,
    port: int = 0,
    open_files: int | None = None,
) -> AsyncGenerator[ServerProcess]:
    """Starts a server on a free port; ends it when the context is left.

    Args:
        flags: Further flags of `wsserver serve`.
        folder: Where its log and, unless told otherwise, its store are.
        env: Further environment variables.
        port: Which port; 0 takes a free one.
        open_files: How many it may have; None for as many as this process.
    """
    command = [sys.executable, "-m", "wsserver", "serve", "--port", str(port), *flags]
    if open_files is not None:
        limited = f'ulimit -n {open_files} && exec "$@"'
        command = ["sh", "-c", limited, "sh", *command]
    environment = {
        **{
            k: v
            for k, v in os.environ.items()
            # Most are killed and would write down no coverage: none is measured.
            if not k.startswith(("COVERAGE_", "OPENAI_", "WSSERVER_"))
        },
        "XDG_STATE_HOME": str(folder),
        **(env or {}),
    }
    stderr = folder / f"server-{len(list(folder.glob('server-*.log')))}.log"
    with stderr.open("wb") as out:
        process = await anyio.open_process(
            command, stdout=-1, stderr=out, env=environment
        )
    try:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        try:
            with anyio.fail_after(START_SECONDS):
                line = await lines.receive_until(b"\n", 4096)
        except (anyio.IncompleteRead, TimeoutError) as error:
            raise AssertionError(f"no server: {stderr.read_text()}") from error
        url = line.decode().removeprefix("listening on ").strip()
        yield ServerProcess(process, url, stderr)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.aclose()
