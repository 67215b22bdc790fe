"""Two files beside the store to which text is appended: one is written, one emptied.

They are mapped into memory, so that appending is a copy: it neither blocks nor fails,
and what was copied is with the operating system, which a killed process can't take
back. A record is its length and a checksum, each of 4 bytes, and then MessagePack: the
key and the epoch of a conversation and one entry. Behind the last one are zeros. A
process that is killed while it copies may leave a piece of a record, and nobody was
told of that one.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from wsserver.log.entry import Entry

FILE_BYTES = 1_048_576
"""How long each file is: space that is taken beforehand can't be lacking later."""

_FRAME = struct.Struct("<II")
_SUFFIXES = ("-text1", "-text2")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, str, Entry]).decode


class Label(Struct, frozen=True, gc=False):
    """What a conversation's records begin with, made once."""

    bytes: bytes
    crc: int


def label(key: str, epoch: str) -> Label:
    """Returns what records of a conversation begin with."""
    begin = b"\x93" + _encode(key) + _encode(epoch)
    return Label(begin, crc32(begin))


class TextFiles:
    """The files of a store that this process alone has open.

    The event loop appends and retires; another thread may clear what was retired.

    Attributes:
        size: How many bytes were appended to the file that is written.
        retired: Whether the other one was not cleared yet.
    """

    def __init__(self, path: Path) -> None:
        """Makes the files of a store that has none.

        Raises:
            OSError: They can't be made, or there is no space for them.
        """
        self.size = 0
        self.retired = False
        self._written = _mapped(f"{path}{_SUFFIXES[0]}")
        self._other = _mapped(f"{path}{_SUFFIXES[1]}")

    def append(self, start: Label, entry: bytes) -> bool:
        """Appends a record; returns whether there was room for it.

        Args:
            start: The conversation's.
            entry: One entry in MessagePack.
        """
        begin, prefix = self.size, start.bytes
        length = len(prefix) + len(entry)
        end = begin + _FRAME.size + length
        if end > FILE_BYTES:
            return False
        frame = _FRAME.pack(length, crc32(entry, start.crc))
        self._written[begin:end] = b"%b%b%b" % (frame, prefix, entry)
        self.size = end
        return True

    def retire(self) -> None:
        """Lets records go to the other file, which was cleared."""
        assert not self.retired, "a file is cleared before it is written again"
        self._written, self._other = self._other, self._written
        self.size = 0
        self.retired = True

    def clear(self) -> None:
        """Overwrites the file that was retired."""
        self._other[:] = bytes(len(self._other))
        self.retired = False

    def close(self) -> None:
        """Lets go of the files; what is in them stays."""
        self._written.close()
        self._other.close()


def _mapped(name: str) -> mmap.mmap:
    with open(name, "x+b", opener=_private) as file:
        file.write(bytes(FILE_BYTES))
        file.flush()
        return mmap.mmap(file.fileno(), FILE_BYTES)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def remove_text_files(path: Path) -> None:
    """Removes the files of a store; rows have what was in them.

    Raises:
        OSError: They can't be removed.
    """
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


class Left(Struct, frozen=True, kw_only=True):
    """What is in the files.

    Attributes:
        at: When one of them was written last, in seconds since the epoch.
        texts: Entries by key and epoch, in the order of their numbers. Rows may have
            some of them.
    """

    at: float
    texts: dict[tuple[str, str], list[Entry]]

    def after(self, key: str, epoch: str, head: int) -> list[Entry]:
        """Returns the text of a conversation that rows up to a number lack."""
        return [e for e in self.texts.get((key, epoch), ()) if e.seq > head]


def read_text_files(path: Path) -> Left:
    """Returns what the files of a store hold, whoever has them open.

    Read them before the rows, and nothing is missed that moves meanwhile.

    Raises:
        OSError: They can't be read.
    """
    at = 0.0
    texts: dict[tuple[str, str], list[Entry]] = {}
    for suffix in _SUFFIXES:
        try:
            with open(f"{path}{suffix}", "rb") as file:
                content = file.read()
                written = os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            continue
        for key, epoch, entry in _records(content):
            texts.setdefault((key, epoch), []).append(entry)
            at = max(at, written)
    for entries in texts.values():
        entries.sort(key=attrgetter("seq"))  # which file is the older one is not told
    return Left(at=at, texts=texts)


def _records(content: bytes) -> Iterator[tuple[str, str, Entry]]:
    """Yields records up to the zeros, or to the first that is not whole."""
    view, at = memoryview(content), 0
    while at + _FRAME.size <= len(view):
        length, crc = _FRAME.unpack_from(view, at)
        at += _FRAME.size
        record = view[at : at + length]
        if not length or crc32(record) != crc:
            return
        try:
            yield _decode(record)
        except msgspec.DecodeError:
            return
        at += length
