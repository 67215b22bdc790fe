"""The way to an MCP server that is a child process: a line of JSON a message.

Not the SDK's own transport, which reads a line of any length, in time that grows
with its square, and lets a server that reads nothing hold up whoever wants to say
that a call is cancelled.
"""

import os
import signal
import subprocess
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import structlog
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from wsserver.tools.mcp.message import MessageReader
from wsserver.tools.mcp.settings import McpSettings

MOST_MESSAGE_BYTES = 4 * 2**20
"""A longer message ends the connection."""

MOST_UNREAD = 64
"""Messages that a server has not read before the next one waits."""

_END_SECONDS = 0.25
"""For each of: the end of its input, SIGTERM. Both are part of a drain."""

_KILL_SECONDS = 1.0
"""For SIGKILL, which no process refuses: only a busy machine takes so long."""

_LINE_BYTES = 2000
_LINES_SHOWN = 5

log = structlog.get_logger(__name__)

Incoming = SessionMessage | Exception
Streams = tuple[
    MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def stdio_transport(
    settings: McpSettings, on_end: Callable[[], None]
) -> AsyncGenerator[Streams]:
    """Starts a server; leaving ends it, whatever it does.

    Args:
        settings: What to start, where and with which variables.
        on_end: Called when it says no more.

    Raises:
        OSError: It can't be started.
    """
    try:
        process = await anyio.open_process(
            settings.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(settings.environment),
            cwd=settings.folder,
            # An interrupt from the keyboard is for the parent, which drains first.
            start_new_session=True,
        )
    except OSError as error:
        # uvloop leaves out which file it was.
        raise OSError(error.errno, error.strerror, settings.command[0]) from error
    assert process.stdin is not None, "standard input is a pipe"
    assert process.stdout is not None, "standard output is a pipe"
    assert process.stderr is not None, "standard error is a pipe"
    said, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, unsent = anyio.create_memory_object_stream[SessionMessage](MOST_UNREAD)
    last_lines: deque[str] = deque(maxlen=_LINES_SHOWN)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, settings.name, process.stdout, said, on_end)
            tasks.start_soon(_write, process.stdin, unsent)
            tasks.start_soon(_log, settings, process.stderr, last_lines)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()
    finally:
        for stream in (said, incoming, outgoing, unsent):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _end(process)
        log.info(
            "mcp_server_ended",
            server=settings.name,
            status=process.returncode,
            last_lines=list(last_lines),
        )


def _environment(further: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a server: not ours, which may hold secrets."""
    return get_default_environment() | dict(further)


async def _read(
    name: str,
    stream: ByteReceiveStream,
    said: MemoryObjectSendStream[Incoming],
    on_end: Callable[[], None],
) -> None:
    lines = BufferedByteReceiveStream(stream)
    reader = MessageReader(name)
    try:
        async with said:
            while True:
                line = await lines.receive_until(b"\n", MOST_MESSAGE_BYTES)
                for message in reader.read(line):
                    await said.send(SessionMessage(message))
    except anyio.DelimiterNotFound:
        log.warning("mcp_message_too_long", server=name, bytes=MOST_MESSAGE_BYTES)
    except (anyio.IncompleteRead, anyio.BrokenResourceError, OSError):
        pass  # It has ended, or nobody listens any more.
    finally:
        on_end()


async def _write(
    stream: ByteSendStream, unsent: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async with unsent:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for message in unsent:
                text = message.message.model_dump_json(
                    by_alias=True, exclude_unset=True
                )
                await stream.send(text.encode() + b"\n")


async def _log(
    settings: McpSettings, stream: ByteReceiveStream, last: deque[str]
) -> None:
    """Passes on what it writes to standard error, by the line as far as they go."""
    rest = b""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, OSError):
        while True:
            *lines, rest = (rest + await stream.receive()).split(b"\n")
            rest = rest[-_LINE_BYTES:]
            for line in lines:
                text = settings.hide(line[-_LINE_BYTES:].decode(errors="replace"))
                log.debug("mcp_server_says", server=settings.name, line=text)
                last.append(text)


async def _end(process: Process) -> None:
    """Ends it and what it has started: by the end of its input, then by force."""
    assert process.stdin is not None, "standard input is a pipe"
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await process.stdin.aclose()
    for forces, seconds in (
        (_nothing, _END_SECONDS),
        (_ask_to_end, _END_SECONDS),
        (_kill, _KILL_SECONDS),
    ):
        with suppress(ProcessLookupError):
            forces(process)
        with anyio.move_on_after(seconds):
            await process.wait()
        if process.returncode is not None:
            break
    else:
        log.warning("mcp_server_will_not_end", pid=process.pid)
    # What it left behind may hold the pipes open; asyncio's transport then stays.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    close = getattr(transport, "close", None)
    if close is not None:
        close()


def _nothing(process: Process) -> None:
    del process


def _ask_to_end(process: Process) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def _kill(process: Process) -> None:
    os.killpg(process.pid, signal.SIGKILL)
