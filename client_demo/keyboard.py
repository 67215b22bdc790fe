"""Lines of standard input, without a thread that would outlive the program.

Editing is the terminal's own. A worker thread reads only once there is something
to read; where that can't be waited for (files, Windows) it waits itself.
"""

import codecs
import os
from collections.abc import AsyncGenerator
from contextlib import suppress

import anyio
from anyio import to_thread

_CHUNK = 65_536


async def lines(descriptor: int) -> AsyncGenerator[str]:
    """Yields lines without their ends until the input ends.

    Args:
        descriptor: An open file, pipe or terminal.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    begun = ""
    while chunk := await _read(descriptor):
        begun += decoder.decode(chunk)
        *whole, begun = begun.split("\n")
        for line in whole:
            yield line
    begun += decoder.decode(b"", final=True)
    if begun:
        yield begun


async def _read(descriptor: int) -> bytes:
    with suppress(OSError, NotImplementedError):
        await anyio.wait_readable(descriptor)
    return await to_thread.run_sync(os.read, descriptor, _CHUNK)
