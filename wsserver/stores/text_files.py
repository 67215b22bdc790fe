"""Two files beside the store to which text is appended: one is written, one emptied.

They are mapped into memory, so that appending is a copy: it neither blocks nor fails,
and what was copied is with the operating system, which a killed process can't take
back. A record is its length and a checksum, each of 4 bytes, and then MessagePack: the
key and the epoch of a conversation and one entry. Behind the last one are zeros. A
process that is killed while it copies may leave a piece of a record, and nobody was
told of that one.
"""

import errno
import fcntl
import mmap
import os
import stat
import struct
import sys
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


def record(start: Label, entry: bytes) -> bytes:
    """Returns the record of one entry in MessagePack."""
    prefix = start.bytes
    frame = _FRAME.pack(len(prefix) + len(entry), crc32(entry, start.crc))
    return b"%b%b%b" % (frame, prefix, entry)


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
        self._written = _Mapped(f"{path}{_SUFFIXES[0]}")
        self._other = _Mapped(f"{path}{_SUFFIXES[1]}")

    def append(self, record: bytes) -> bool:
        """Appends a record, or several; returns whether there was room for it."""
        begin = self.size
        end = begin + len(record)
        if end > FILE_BYTES:
            return False
        self._written.bytes[begin:end] = record
        self.size = end
        return True

    def append_and_sync(self, records: bytes) -> bool:
        """Appends records and waits until they are on the medium; blocks.

        Returns:
            Whether there was room for them.

        Raises:
            OSError: The medium can't be written; nothing was appended.
        """
        begin = self.size
        if begin + len(records) > FILE_BYTES:
            return False
        # A copy to the mapping would have far more than it written to the medium.
        os.pwrite(self._written.file, records, begin)
        _sync(self._written.file)
        self.size += len(records)
        return True

    def retire(self) -> None:
        """Lets records go to the other file, which was cleared."""
        assert not self.retired, "a file is cleared before it is written again"
        self._written, self._other = self._other, self._written
        self.size = 0
        self.retired = True

    def clear(self) -> None:
        """Overwrites the file that was retired."""
        self._other.bytes[:] = bytes(FILE_BYTES)
        self.retired = False

    def close(self) -> None:
        """Lets go of the files; what is in them stays."""
        self._written.close()
        self._other.close()


class _Mapped:
    def __init__(self, name: str) -> None:
        self.file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(self.file, "wb", closefd=False) as file:
                file.write(bytes(FILE_BYTES))
            self.bytes = mmap.mmap(self.file, FILE_BYTES)
        except BaseException:
            os.close(self.file)
            raise

    def close(self) -> None:
        self.bytes.close()
        os.close(self.file)


def _sync(file: int) -> None:
    if sys.platform == "darwin":  # where `fsync` leaves it in the drive's cache
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


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
        """Returns the text of a conversation that follows on a number without a gap.

        There is one where a record is damaged; and one for a moment where somebody else
        reads, when a file got full between the reading of the one and of the other.
        """
        text: list[Entry] = []
        for entry in self.texts.get((key, epoch), ()):
            if entry.first == head + 1:
                text.append(entry)
                head = entry.seq
        return text


def read_text_files(path: Path) -> Left:
    """Returns what the files of a store hold, whoever has them open.

    Read them before the rows, and nothing is missed that moves meanwhile.

    Raises:
        OSError: They can't be read.
    """
    at = 0.0
    texts: dict[tuple[str, str], list[Entry]] = {}
    for suffix in _SUFFIXES:
        file = Path(f"{path}{suffix}")
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EEXIST, "is in the way of text to be stored", str(file))
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES)
        for key, epoch, entry in _records(content):
            texts.setdefault((key, epoch), []).append(entry)
            at = max(at, found.st_mtime)
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
