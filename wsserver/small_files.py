"""Reads files that others write: settings, keys, certificates. None of them is large."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 16 * 2**20
"""Room for a few hundred thousand keys; a device or a log that somebody has named by
mistake is not read to an end that may not come."""


def read_small(path: Path) -> bytes:
    """Returns the content of a file; blocks.

    Raises:
        OSError: It can't be read, is longer than `MOST_BYTES`, or is a named pipe that
            nobody writes to.
    """
    with open(path, "rb", opener=_open) as file:
        os.set_blocking(file.fileno(), True)
        content = file.read(MOST_BYTES + 1)
        pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    if pipe and not content:
        raise OSError(errno.ENXIO, "a pipe that nobody writes to", str(path))
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"longer than {MOST_BYTES} bytes", str(path))
    return content


def _open(path: str, flags: int) -> int:
    # Else opening a pipe waits for somebody who writes to it.
    return os.open(path, flags | os.O_NONBLOCK)
