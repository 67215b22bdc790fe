"""What is read again while the server runs: files that others renew.

A certificate, keys. Each file is for itself: what can't be used leaves what was in
force before, and one line in the log says which file that is and why.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread
import structlog
from msgspec import Struct

from wsserver.settings import SettingsError

READ_SECONDS = 5.0
"""For one file. A disk that hangs, or a pipe that nobody writes to, takes longer."""

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Renewable(Struct, Generic[T], frozen=True, kw_only=True):
    """A file whose content may change.

    Attributes:
        setting: Which setting names it.
        file: Its path.
        beside: The paths of others that are read with it.
        read: Reads and checks it, in a worker thread; raises `SettingsError` if it is
            of no use.
        take: Puts in force what was read; returns what the log says of it, if there
            is something to say.
    """

    setting: str
    file: str
    beside: tuple[str, ...] = ()
    read: Callable[[], T]
    take: Callable[[T], Mapping[str, object] | None]


class Reload:
    """The files of one server."""

    def __init__(self) -> None:
        self._files: list[Renewable[Any]] = []
        # Settings, and which files are read for them; None while that is looked up.
        self._reading: set[tuple[str, tuple[object, ...] | None]] = set()

    def add(self, file: Renewable[Any]) -> None:
        """Reads a file again, too, from now on."""
        self._files.append(file)

    async def run(self, taken: Callable[[], None]) -> None:
        """Reads all files once, and takes up what is of use.

        Args:
            taken: Called after each file that was taken up.
        """
        async with anyio.create_task_group() as tasks:
            for file in self._files:
                if (file.setting, None) in self._reading:
                    _refused(_hangs(file))
                else:
                    tasks.start_soon(self._renew, file, taken)

    async def _renew(self, file: Renewable[Any], taken: Callable[[], None]) -> None:
        try:
            with anyio.fail_after(READ_SECONDS):
                content = await anyio.to_thread.run_sync(
                    self._read, file, abandon_on_cancel=True
                )
            told = file.take(content) or {}
            log.info("reloaded", setting=file.setting, file=file.file, **told)
            taken()
        except SettingsError as error:
            _refused(str(error))
        except TimeoutError:
            _refused(
                f"{file.setting}: {file.file} can't be read within {READ_SECONDS:g} s;"
                " is the disk there?"
            )
        except Exception:
            # The boundary of a file: the others are read, and the server serves on.
            log.exception("reload_defective", setting=file.setting)

    def _read(self, file: Renewable[T]) -> T:
        """Is run in a thread, which nothing stops while it hangs."""
        looks_up = (file.setting, None)
        self._reading.add(looks_up)
        try:
            reads = (file.setting, tuple(map(_identity, (file.file, *file.beside))))
        finally:
            self._reading.discard(looks_up)
        if reads in self._reading:
            raise SettingsError(_hangs(file))
        self._reading.add(reads)
        try:
            return file.read()
        finally:
            self._reading.discard(reads)


def _identity(path: str) -> object:
    """Returns what is another once another file has taken its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None  # reading it says why
    return found.st_dev, found.st_ino


def _hangs(file: Renewable[Any]) -> str:
    return (
        f"{file.setting}: {file.file} is not read again while the reading that began"
        " before hangs; is the disk there?"
    )


def _refused(about: str) -> None:
    log.error("reload_refused", about=f"{about}; what was read before stays in force")
