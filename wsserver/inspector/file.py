"""Writes a recording to a file while it grows."""

import errno
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from tempfile import TemporaryFile

import anyio
import structlog

from protocol.codec import encode
from wsserver.inspector.recorder import Recorder
from wsserver.inspector.records import Lost

WRITE_SECONDS = 0.5
WRITE_BYTES = 1_048_576

log = structlog.get_logger(__name__)


class RecordingFileError(Exception):
    """The file can't be made; says why."""


def check_new(path: str) -> None:
    """Returns if a recording could be made there; leaves nothing.

    Raises:
        RecordingFileError: It can't be made, or is there already.
    """
    try:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with TemporaryFile(dir=os.path.dirname(path) or os.curdir):
            pass
    except OSError as error:
        raise RecordingFileError(error.strerror) from None


@asynccontextmanager
async def recording_to(path: str, recorder: Recorder) -> AsyncGenerator[None]:
    """Writes what is recorded while the context is open, and the rest at its end.

    The file is the owner's alone. A disk that is slow misses lines, and one that is
    full ends the recording; the server goes on.

    Raises:
        RecordingFileError: The file can't be made, or is there already.
    """
    try:
        opened = await anyio.open_file(path, "xb", buffering=0, opener=_private)
    except OSError as error:
        raise RecordingFileError(error.strerror) from None
    written = _Written(opened, recorder)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(written.keep_up)
            yield
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await written.finish()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Written:
    """What of a recording is in the file."""

    def __init__(self, file: anyio.AsyncFile[bytes], recorder: Recorder) -> None:
        self._file = file
        self._recorder = recorder
        self._position = 0
        self._begun = False
        self._failed = False

    async def keep_up(self) -> None:
        while True:
            await self._write()
            if self._failed:
                return
            await anyio.sleep(WRITE_SECONDS)
            await self._recorder.ring.wait_after(self._position)

    async def finish(self) -> None:
        while not self._failed and (
            not self._begun or self._position < self._recorder.ring.head
        ):
            await self._write()
        await self._file.aclose()

    async def _write(self) -> None:
        batch = self._recorder.ring.after(self._position, WRITE_BYTES)
        lines = batch.lines
        if batch.missed:
            n = self._position + batch.missed
            lines = [encode(Lost(n=n, at_ms=0, lines=batch.missed)), *lines]
        if not self._begun:
            lines = [encode(self._recorder.header), *lines]
        # Moved first: a write that is cancelled goes on in its thread.
        self._position, self._begun = batch.through, True
        try:
            with anyio.CancelScope(shield=True):
                await self._put(b"".join(line + b"\n" for line in lines))
        except OSError as error:
            self._failed = True
            log.warning("recording_ended", error=error.strerror)

    async def _put(self, data: bytes) -> None:
        while data:
            data = data[await self._file.write(data) :]
