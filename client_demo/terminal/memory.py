"""Which conversations were had from this terminal, kept over restarts.

Names and positions only: what was said is the server's, and is read again from
there. One file for all servers, in the user's XDG state folder.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

_MOST = 200
_FOLDER = "wsserver"


class Remembered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation.

    Attributes:
        conversation: Its id.
        title: The beginning of its first message; empty before one.
        epoch: Of the server's log, when it was left.
        last: The last number that was seen.
    """

    conversation: str
    title: str = ""
    epoch: str | None = None
    last: int = 0


class _Server(Struct, frozen=True, kw_only=True):
    """The conversations at one server, the one that was used last at the end."""

    conversations: tuple[Remembered, ...] = ()


class _File(Struct, frozen=True, kw_only=True):
    """What is in the file: servers by their URL."""

    servers: dict[str, _Server] = {}


class MemoryFileError(Exception):
    """The file can't be read or written; the message names it."""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Returns where this program keeps its state."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # so says the XDG specification
        state = Path.home() / ".local" / "state"
    return state / _FOLDER


class ChatMemory:
    """The conversations at one server.

    Attributes:
        conversations: The one that was used last at the end.
    """

    def __init__(self, path: Path, url: str) -> None:
        """Knows nothing until `load`.

        Args:
            path: The file.
            url: Of which server.
        """
        self.conversations: list[Remembered] = []
        self._path = path
        self._url = url

    @property
    def newest(self) -> Remembered | None:
        """The one that was used last."""
        return self.conversations[-1] if self.conversations else None

    async def load(self) -> None:
        """Reads the file, if there is one.

        Raises:
            MemoryFileError: It can't be read, or holds something else.
        """
        file = await to_thread.run_sync(self._read)
        self.conversations = [*file.servers.get(self._url, _Server()).conversations]

    async def put(self, remembered: Remembered) -> None:
        """Remembers a conversation as the one that was used last.

        Raises:
            MemoryFileError: The file can't be written.
        """
        self._remove(remembered.conversation)
        self.conversations.append(remembered)
        await to_thread.run_sync(self._write)

    async def forget(self, conversation: str) -> None:
        """Forgets a conversation.

        Raises:
            MemoryFileError: The file can't be written.
        """
        self._remove(conversation)
        await to_thread.run_sync(self._write)

    def _remove(self, conversation: str) -> None:
        self.conversations = [
            one for one in self.conversations if one.conversation != conversation
        ][-_MOST:]

    def _read(self) -> _File:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return _File()
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            raise MemoryFileError(f"{self._path}: {error}; move it away") from error

    def _write(self) -> None:
        # Read again: another terminal may talk to another server.
        file = self._read()
        mine = _Server(conversations=tuple(self.conversations))
        file = replace(file, servers={**file.servers, self._url: mine})
        part = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(msgspec.json.format(msgspec.json.encode(file)))
            part.chmod(0o600)
            part.replace(self._path)
        except OSError as error:
            raise MemoryFileError(f"{self._path}: {error}") from error
