"""`chat`: the program in the terminal.

Ctrl-C stops the answer, and not the program; Ctrl-D or `/quit` leaves.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from sys import stdin

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from client_demo.client import connect
from client_demo.complaints import complaint
from client_demo.errors import (
    ClientError,
    ConversationResetError,
    NotConnectedError,
    StoppedError,
)
from client_demo.exit_codes import COMPLETE, FAILED, NO_CONNECTION, WRONG_USAGE
from client_demo.session import Notice
from client_demo.tasks import task_group
from client_demo.terminal import slash_commands
from client_demo.terminal.command_runner import CommandRunner
from client_demo.terminal.desk import Desk, DeskError, GoneError
from client_demo.terminal.line_source import (
    EditedLines,
    LineCancelled,
    LineSource,
    PipedLines,
    is_terminal,
)
from client_demo.terminal.local_tools import ToolFileError, load_tools, taken
from client_demo.terminal.memory import ChatMemory, MemoryFileError, state_folder
from client_demo.terminal.screen import LOG_IS_ANOTHER, Screen
from client_demo.terminal.slash_commands import SlashError
from client_demo.tools import ClientTool
from client_demo.turn import Turn
from protocol.client.events import Connected, Disconnected, Lost
from protocol.content import Content
from protocol.control import Goaway, Waiting
from protocol.control_characters import without_controls

MEMORY_FILE = "chat.json"
_HISTORY_FILE = "chat_history"
_MOST_RECALLED = 20
RESTARTS = "the server restarts; the connection is made again by itself"
HOW_TO_LEAVE = "Ctrl-D or /quit leaves"


class Wanted(Struct, frozen=True, kw_only=True):
    """What to open.

    Attributes:
        url: The server's.
        token: Credentials.
        model: None takes the conversation's or the server's.
        conversation: Its id; None takes the last one at this server.
        new: Begins one, whatever was before.
        tools: What the terminal runs.
    """

    url: str
    token: str | None = None
    model: str | None = None
    conversation: str | None = None
    new: bool = False
    tools: Sequence[ClientTool] = ()


class Terminal:
    """Reads lines, obeys commands, shows answers."""

    def __init__(
        self, console: Console, *, folder: Path, descriptor: int, edited: bool = False
    ) -> None:
        """Takes the two ends of the terminal.

        Args:
            console: Where to show.
            folder: Where conversations and lines are remembered.
            descriptor: Where to read lines that no person edits.
            edited: A person edits the lines, on this process's terminal.
        """
        self._edited = edited
        self._screen = Screen(console)
        self._folder = folder
        self._descriptor = descriptor
        self._lines: LineSource | None = None
        self._desk: Desk | None = None
        self._turn: Turn | None = None
        self._stopping: Turn | None = None
        self._following = anyio.CancelScope()
        self._busy: anyio.CancelScope | None = None

    async def run(self, wanted: Wanted) -> int:
        """Chats until the input ends or the user leaves.

        Returns:
            The exit code: 0, 1 where the server or the memory refused, 4 for no
            connection.
        """
        memory = ChatMemory(self._folder / MEMORY_FILE, wanted.url)
        try:
            await memory.load()
            async with connect(
                wanted.url, token=wanted.token, notify=self.noticed
            ) as client:
                self._desk = desk = Desk(client, memory, wanted.tools)
                self._lines = self._line_source(desk)
                await self._open(desk, wanted, memory)
                async with task_group() as tasks:
                    tasks.start_soon(self._obey_signals, tasks)
                    await self._converse(desk, self._lines)
        except NotConnectedError as error:
            self._screen.warn(str(error))
            return NO_CONNECTION
        except ClientError as error:
            self._screen.warn(complaint(error, token=wanted.token, models=self._models))
            return FAILED
        except MemoryFileError as error:
            self._screen.warn(str(error))
            return FAILED
        return COMPLETE

    @property
    def _models(self) -> list[str]:
        return [] if self._desk is None else self._desk.models

    def noticed(self, notice: Notice) -> None:
        """Shows what happens to the connection."""
        match notice:
            case Connected(resumed=True):
                self._screen.say("connected again")
            case Disconnected() if self._lines is not None:
                self._screen.say(
                    f"connection lost; next attempt in {notice.retry_in_seconds:.1f} s"
                )
            case Goaway():
                self._screen.say(RESTARTS)
            case Lost():
                self._screen.say(f"{notice.error.message} /new begins another one")
            case Waiting():
                self._screen.waiting(notice)
            case _:
                pass
        if self._lines is not None:
            self._lines.refresh()

    def _line_source(self, desk: Desk) -> LineSource:
        if not self._edited:
            return PipedLines(self._descriptor, self._screen.prompt)

        def status() -> str:
            state = "connected" if desk.connected else "no connection"
            return without_controls(f"{desk.model} · {state} · /help")

        return EditedLines(self._folder / _HISTORY_FILE, status)

    async def _open(self, desk: Desk, wanted: Wanted, memory: ChatMemory) -> None:
        newest = None if wanted.new else memory.newest
        name = wanted.conversation or (newest and newest.conversation)
        try:
            is_as_left = await desk.open(name, model=wanted.model)
        except GoneError as gone:
            self._screen.warn(f"{gone}\nA new one begins:")
            is_as_left = await desk.open(wanted.conversation, model=wanted.model)
        if not is_as_left:
            self._screen.warn(LOG_IS_ANOTHER)
        self._show_history(desk)

    def _show_history(self, desk: Desk, *, recall: bool = True) -> None:
        chat = desk.chat
        self._screen.say(f"conversation {chat.conversation} · {desk.model}")
        timeline = chat.view.timeline if recall else []
        if len(timeline) > _MOST_RECALLED:
            self._screen.say(f"… {len(timeline) - _MOST_RECALLED} before that …")
        self._screen.recall(timeline[-_MOST_RECALLED:])

    async def _converse(self, desk: Desk, lines: LineSource) -> None:
        commands = CommandRunner(desk, self._screen)
        await self._join(desk)
        while True:
            try:
                line = await lines.next()
            except LineCancelled:
                self._screen.say(HOW_TO_LEAVE)
                continue
            if line is None or line.strip() == "/quit":
                return
            if line.strip():
                await self._obey(desk, commands, line.strip())

    async def _obey(self, desk: Desk, commands: CommandRunner, line: str) -> None:
        """Does what a line says, unless the user gives up waiting for it."""
        with anyio.CancelScope() as self._busy:
            try:
                await self._do(desk, commands, line)
            except StoppedError:
                raise
            except ClientError as error:
                self._screen.warn(complaint(error, token="", models=self._models))
            except (SlashError, DeskError, MemoryFileError) as error:
                self._screen.warn(str(error))
        if self._busy.cancelled_caught:
            self._screen.say("given up")
        self._busy = None

    async def _do(self, desk: Desk, commands: CommandRunner, line: str) -> None:
        before = desk.chat
        command = slash_commands.parse(line)
        if command is None:
            to_say: Content | None = slash_commands.said(line)
        else:
            to_say = await commands.run(*command)
        if desk.chat is not before:
            is_copy = to_say is not None or command == ("/fork", "")
            self._show_history(desk, recall=not is_copy)
            await self._join(desk)
        if to_say is not None:
            await self._follow(desk, desk.chat.send(to_say), "")

    async def _join(self, desk: Desk) -> None:
        """Follows the turn that runs already, if one does."""
        running = desk.chat.running()
        if running is not None:
            await self._follow(desk, running, running.text)

    async def _follow(self, desk: Desk, turn: Turn, so_far: str) -> None:
        """Shows a turn until it ends, or the user does not wait for its end."""
        self._turn = turn
        screen = self._screen
        try:
            with anyio.CancelScope() as self._following, screen.begin() as live:
                live.feed(without_controls(so_far))
                async with task_group() as tasks:
                    tasks.start_soon(live.keep_drawn)
                    tasks.start_soon(screen.keep_waiting, live)
                    async for event in turn:
                        screen.show(live, event)
        except ConversationResetError as error:
            screen.say(str(error))
            screen.recall(desk.chat.view.timeline)
        finally:
            self._turn = None
            screen.end()
        if self._following.cancelled_caught:
            screen.say("not waiting for its end; the stop is on its way")
        elif turn.view is not None and turn.view.proven is False:
            screen.warn("the text received is not the text that the server keeps")
        await desk.remember()

    async def _obey_signals(self, tasks: TaskGroup) -> None:
        """Stops the answer; does not wait for its end when asked again.

        Where no person edits the lines, the signal ends the program at the prompt.
        """
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if self._turn is not None:
                    self._stop_or_leave(self._turn, tasks)
                elif self._busy is not None:
                    self._busy.cancel()
                elif self._edited:
                    self._screen.say(HOW_TO_LEAVE)
                else:
                    self._screen.console.print()
                    tasks.cancel_scope.cancel()

    def _stop_or_leave(self, turn: Turn, tasks: TaskGroup) -> None:
        if turn is self._stopping:
            self._following.cancel()
        else:
            self._stopping = turn
            tasks.start_soon(self._stop, turn)

    async def _stop(self, turn: Turn) -> None:
        try:
            await turn.interrupt()
        except StoppedError:
            return  # Whoever follows the turn gets it too.
        except ClientError as error:
            self._screen.warn(str(error))


async def chat(wanted: Wanted, *, tool_file: Path | None, own_tools: bool) -> int:
    """Runs the terminal client on this process's terminal; returns the exit code.

    Args:
        wanted: What to open, but for the tools.
        tool_file: A Python file with more tools.
        own_tools: Whether the terminal runs any tool.
    """
    console = Console()
    screen = Screen(console)
    try:
        tools = load_tools(tool_file) if own_tools else []
    except ToolFileError as error:
        screen.warn(str(error))
        return WRONG_USAGE
    if tool_file is not None:
        screen.say(f"tools of {tool_file}: {taken(tools[1:])}")
    terminal = Terminal(
        console,
        folder=state_folder(os.environ),
        descriptor=stdin.fileno(),
        edited=is_terminal(),
    )
    return await terminal.run(replace(wanted, tools=tools))
