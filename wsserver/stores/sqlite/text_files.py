"""Two files beside the store to which text is appended: one is written, one emptied.

They are mapped into memory, so that appending is a copy, without a system call; what was
copied is with the operating system, which a killed process can't take back. A page that
is not in memory has to be read first, which may block for a moment. The space is taken
beforehand. Where a file does not keep it (`wsserver.stores.sqlite.disk_space`), a copy to a full
disk would end the process (SIGBUS); there they are written. Behind the last record are
zeros.
"""

import errno
import fcntl
import mmap
import os
import stat
import sys
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

import structlog
from msgspec import Struct

from wsserver.log.entry import Entry
from wsserver.stores.sqlite.disk_space import keeps_space
from wsserver.stores.sqlite.text_records import has_records_behind, records

log = structlog.get_logger(__name__)

FILE_BYTES = 4_194_304
"""How long each file is: space that is taken beforehand can't be lacking later."""

_SUFFIXES = ("-text1", "-text2")


def text_paths(path: Path) -> tuple[Path, Path]:
    """Returns where the files of a store are."""
    one, two = (Path(f"{path}{suffix}") for suffix in _SUFFIXES)
    return one, two


class TextFiles:
    """The files of a store that this process alone has open.

    The event loop appends and retires; another thread may clear what was retired.

    Attributes:
        size: How many bytes were appended to the file that is written.
        retired: Whether the other one was not cleared yet.
    """

    def __init__(self, path: Path, *, power: bool = False) -> None:
        """Makes the files of a store that has none.

        Args:
            path: The store's.
            power: Whether what is done to them is to outlive a loss of power.

        Raises:
            OSError: They can't be made, or there is no space for them.
        """
        self.size = 0
        self.retired = False
        self._used = 0  # of the other one
        self._power = power
        with ExitStack() as making:
            written, other = text_paths(path)
            self._written = _File(written)
            making.callback(self._written.remove)
            self._other = _File(other)
            making.callback(self._other.remove)
            if power:
                _sync_folder(path.parent)
            making.pop_all()

    def append(self, record: bytes) -> bool:
        """Appends a record; returns whether there was room for it, here and on the disk."""
        begin = self.size
        end = begin + len(record)
        if end > FILE_BYTES:
            return False
        mapping = self._written.mapping
        if mapping is not None:
            mapping[begin:end] = record
        else:
            try:
                self._written.write(record, begin)
            except OSError:  # a piece of it is no harm, and is overwritten
                return False
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
        try:
            self._written.write(records, begin)
            _sync(self._written.file)
        except OSError:
            self._written.erase(begin, begin + len(records))
            raise
        self.size += len(records)
        return True

    def retire(self) -> None:
        """Lets records go to the other file, which was cleared."""
        assert not self.retired, "a file is cleared before it is written again"
        self._written, self._other = self._other, self._written
        self._used, self.size = self.size, 0
        self.retired = True

    def clear(self) -> None:
        """Empties the file that was retired; blocks where that waits for the medium.

        Raises:
            OSError: It still has what it had, and stays retired.
        """
        self._other.erase(0, self._used)
        self.retired = False
        if self._power:
            try:
                _sync(self._other.file)
            except OSError as error:  # rows have what was in it, or it was to go
                log.warning("store_text_not_cleared", error=str(error))

    def close(self) -> None:
        """Lets go of the files; what is in them stays."""
        self._written.close()
        self._other.close()

    def remove(self) -> None:
        """Lets go of the files, and removes them."""
        self._written.remove()
        self._other.remove()


class _File:
    """A file of `FILE_BYTES`.

    Attributes:
        file: Its descriptor.
        mapping: It in memory; None where a copy to there may end the process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.mapping: mmap.mmap | None = None
        try:
            if keeps_space(self.file):
                with open(self.file, "wb", closefd=False) as file:
                    file.write(bytes(FILE_BYTES))
                self.mapping = mmap.mmap(self.file, FILE_BYTES)
            else:
                os.ftruncate(self.file, FILE_BYTES)
        except BaseException:
            os.close(self.file)
            path.unlink()
            raise

    def write(self, content: bytes, at: int) -> None:
        if os.pwrite(self.file, content, at) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def erase(self, begin: int, end: int) -> None:
        """Lets zeros be there; behind it are none but zeros already."""
        if self.mapping is not None:
            self.mapping[begin:end] = bytes(end - begin)
        else:  # zeros that are written would take space, which may be lacking
            os.ftruncate(self.file, begin)
            os.ftruncate(self.file, FILE_BYTES)

    def close(self) -> None:
        if self.mapping is not None:
            self.mapping.close()
        os.close(self.file)

    def remove(self) -> None:
        self.close()
        self._path.unlink()


def _sync(file: int) -> None:
    if sys.platform == "darwin":  # where `fsync` leaves it in the drive's cache
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_text_files(path: Path) -> None:
    """Removes the files of a store; rows have what was in them.

    Raises:
        OSError: They can't be removed.
    """
    for file in text_paths(path):
        file.unlink(missing_ok=True)


class Left(Struct, frozen=True, kw_only=True):
    """What is in the files.

    Attributes:
        at: When one of them was written last, in seconds since the epoch.
        texts: Entries by key and epoch, in the order of their numbers. Rows may have
            some of them.
        damaged: Whether records are behind one that can't be read. Whose that was
            nobody knows.
    """

    at: float
    damaged: bool
    texts: dict[tuple[str, str], list[Entry]]

    def after(self, key: str, epoch: str, head: int) -> list[Entry]:
        """Returns the text of a conversation that follows on a number without a gap.

        There is one where a file is damaged; and one for a moment where somebody else
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
        OSError: They can't be read, or something else has the name of one.
    """
    at, damaged = 0.0, False
    texts: dict[tuple[str, str], list[Entry]] = {}
    for file in text_paths(path):
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise _in_the_way(file)
        try:
            with file.open("rb") as opened:
                content = opened.read(FILE_BYTES)
                size = opened.seek(0, os.SEEK_END)
        except FileNotFoundError:  # the server has ended since: rows have it
            continue
        end = 0
        for (key, epoch, entry), ends in records(content):
            end = ends
            texts.setdefault((key, epoch), []).append(entry)
            at = max(at, found.st_mtime)
        if not (end or _may_be_ours(content, size)):
            raise _in_the_way(file)
        damaged = damaged or has_records_behind(content, end)
    for entries in texts.values():
        entries.sort(key=attrgetter("seq"))  # which file is the older one is not told
    return Left(at=at, damaged=damaged, texts=texts)


def _may_be_ours(content: bytes, size: int) -> bool:
    """Whether a file without a whole record at its beginning was made here.

    Ours are made of zeros and all of one length, whatever a kill or a bad medium does
    to what is written to them; a kill while one is made leaves fewer zeros.
    """
    return size == FILE_BYTES or (size < FILE_BYTES and not content.strip(b"\0"))


def _in_the_way(file: Path) -> OSError:
    about = "is not of this store, and in the way of text to be stored"
    return OSError(errno.EEXIST, about, str(file))
