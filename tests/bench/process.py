"""A measured process, and what the operating system says about it and the machine."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
START_SECONDS = 30.0
_CPUCLOCK_SCHED = 2


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
        """Returns the processor time it has used, of all its threads.

        It is what /proc/PID/stat shows in steps of 10 ms, here to the nanosecond: the
        clock that clock_getcpuclockid(3) names.
        """
        return time.clock_gettime((~self.pid << 3) | _CPUCLOCK_SCHED)

    def rss_bytes(self) -> int:
        """Returns how much memory it holds."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


def this_process() -> Process:
    """Returns the process of the clients."""
    return Process(0, os.getpid())


class Usage(Struct, frozen=True):
    """Processor seconds up to a moment; take the difference of two.

    Attributes:
        at: The moment, of CLOCK_MONOTONIC.
        relay: Of the relay.
        upstream: Of the mock upstream.
        client: Of the clients.
        machine: Of all processes of the machine, the kernel's work included.
    """

    at: float
    relay: float
    upstream: float
    client: float
    machine: float

    @classmethod
    def now(cls, relay: Process, upstream: Process) -> "Usage":
        """Returns what was used so far."""
        return cls(
            time.monotonic(),
            relay.cpu_seconds(),
            upstream.cpu_seconds(),
            time.process_time(),
            _machine_seconds(),
        )

    def since(self, start: "Usage") -> "Usage":
        """Returns what was used from `start` to here."""
        return Usage(
            self.at - start.at,
            self.relay - start.relay,
            self.upstream - start.upstream,
            self.client - start.client,
            self.machine - start.machine,
        )


def _machine_seconds() -> float:
    with Path("/proc/stat").open() as lines:
        fields = [int(field) for field in lines.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    busy = user + nice + system + irq + softirq + steal
    return busy / os.sysconf("SC_CLK_TCK")


class StartError(Exception):
    """A process did not start; what it said."""


@asynccontextmanager
async def spawned(
    command: Sequence[str], env: Mapping[str, str]
) -> AsyncGenerator[Process]:
    """Runs a command that prints its port, or a line that ends with it.

    It has a temporary folder of its own, and is killed at the end.

    Raises:
        StartError: It printed no port, or does not listen there.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        said = Path(folder) / "stderr"
        places = {"TMPDIR": folder, "XDG_STATE_HOME": folder}
        with said.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **places, **env},
                cwd=ROOT,
            )
        try:
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
            port = line.decode().strip().removesuffix("/v1/chat").rpartition(":")[2]
            if not port.isdecimal():
                lines = said.read_text("utf-8", "replace").strip().splitlines()
                raise StartError(lines[-1] if lines else "it said nothing")
            await _listening(int(port))
            yield Process(int(port), process.pid)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _listening(port: int) -> None:
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise StartError(f"nobody listens on {port}")
