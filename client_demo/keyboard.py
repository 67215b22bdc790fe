"""Lines of standard input, without a thread that would outlive the program.

Editing is the terminal's own. Where waiting for input is not possible (files,
Windows) reading happens in a worker thread.
"""

import codecs
import os
from collections.abc import AsyncGenerator

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
    try:
        await anyio.wait_readable(descriptor)
    except (OSError, NotImplementedError):
        return await to_thread.run_sync(os.read, descriptor, _CHUNK)
    return os.read(descriptor, _CHUNK)
