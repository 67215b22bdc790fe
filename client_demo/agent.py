"""A worked agent: it reads a folder, and writes a note once a person has agreed.

Everything that an agent on this client needs, in one place to copy from: tools as
typed functions, plain and async; several calls at once; progress; approval that
waits for a person; one answer at the end. Nothing here speaks of reconnects: calls
run once and their results arrive, whatever happens to the connection.
"""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated

import anyio
from msgspec import Meta, Struct

from client_demo.client import connect
from client_demo.tools import ClientTool, ToolContext, tool
from protocol.content import Config, Detach
from protocol.events import LogEvent

INSTRUCTIONS = (
    "You work in one folder of text files. Look before you answer, name the files that"
    " you rely on, and write a note only when you are asked for one."
)
NOTE = "note.md"
_MOST_MATCHES = 50
_LONGEST_LINE = 200
_GRACE_SECONDS = 24 * 3600.0

Approve = Callable[[str], Awaitable[bool]]
"""Asks a person about the text of a note; may take as long as it takes."""

Show = Callable[[LogEvent], None]
"""Shows what the agent does, event by event."""


class FoundFile(Struct, frozen=True, kw_only=True):
    """A file of the folder."""

    name: str
    size_bytes: int


class Match(Struct, frozen=True, kw_only=True):
    """A line in which a text was found; `line` counts from 1."""

    name: str
    line: int
    text: str


class FolderTools:
    """What the model may do in one folder; nothing outside of it."""

    def __init__(self, folder: Path, approve: Approve) -> None:
        """Takes the folder.

        Args:
            folder: An existing one.
            approve: Asked before anything is written.
        """
        self._folder = folder
        self._approve = approve
        self._one_at_a_time = anyio.Lock()

    def all(self) -> list[ClientTool]:
        """Returns them as tools."""
        return [
            tool(self.list_files),
            tool(self.search_files),
            tool(self.read_file),
            # A person may be at lunch: no deadline but the server's ceiling.
            tool(self.write_note, timeout_s=None),
        ]

    def list_files(self) -> list[FoundFile]:
        """Lists the files with their sizes."""
        return [
            FoundFile(name=self._name(path), size_bytes=path.stat().st_size)
            for path in self._files()
        ]

    def search_files(
        self,
        query: Annotated[str, Meta(min_length=1, description="What to look for")],
        context: ToolContext,
    ) -> list[Match]:
        """Finds the lines that contain a text, whatever its case."""
        found: list[Match] = []
        for path in self._files():
            context.progress()
            lines = path.read_text(errors="replace").splitlines()
            found += [
                Match(name=self._name(path), line=number, text=line[:_LONGEST_LINE])
                for number, line in enumerate(lines, 1)
                if query.casefold() in line.casefold()
            ]
        return found[:_MOST_MATCHES]

    def read_file(self, name: str) -> str:
        """Reads a file that `list_files` names."""
        for path in self._files():
            if self._name(path) == name:
                return path.read_text(errors="replace")
        raise LookupError(f"there is no file {name!r} here; list_files says which are")

    async def write_note(self, text: str) -> str:
        """Writes the note, in place of the one before, if the user agrees."""
        async with self._one_at_a_time:
            agreed = await self._approve(text)
        if not agreed:
            return "The user said no. Do not try again; ask what to change."
        note = anyio.Path(self._folder / NOTE)
        if await note.is_symlink():
            raise PermissionError(f"{NOTE} leads elsewhere; it is not written")
        await note.write_text(text)
        return f"Written to {NOTE}."

    def _files(self) -> Iterator[Path]:
        for path in sorted(self._folder.rglob("*")):
            hidden = any(part.startswith(".") for part in self._name(path).split("/"))
            if path.is_file() and not path.is_symlink() and not hidden:
                yield path

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


async def agent(
    task: str,
    *,
    url: str,
    folder: Path,
    approve: Approve,
    show: Show,
    token: str | None = None,
    model: str | None = None,
) -> str:
    """Does one task in one folder.

    Args:
        task: What to do.
        url: The server's.
        folder: Where.
        approve: Asked before a note is written.
        show: Told every event.
        token: Credentials.
        model: None takes the server's.

    Returns:
        The answer.

    Raises:
        ClientError: There is no whole answer, as for `Turn.answer`.
    """
    tools = FolderTools(folder, approve).all()
    # While the person thinks, the network may be gone for longer than a minute.
    config = Config(detach=Detach(grace_s=_GRACE_SECONDS))
    async with connect(url, token=token) as client:
        chat = await client.open(
            model=model, instructions=INSTRUCTIONS, tools=tools, config=config
        )
        async with chat.send(task) as turn:
            async for event in turn:
                show(event)
        return await turn.answer()
