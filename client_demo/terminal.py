"""`chat`: a conversation in the terminal.

Ctrl-C stops the answer; at the prompt it leaves.
"""

import signal
import sys

import anyio
from anyio.abc import TaskGroup
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from client_demo.chat import Chat
from client_demo.client import connect
from client_demo.control_characters import without_controls
from client_demo.errors import ClientError, ConversationResetError, StoppedError
from client_demo.keyboard import lines
from client_demo.live_markdown import LiveMarkdown
from client_demo.session import Notice
from client_demo.tasks import task_group
from client_demo.turn import Turn
from protocol.client_events import Connected, Disconnected
from protocol.content import Content, TextPart
from protocol.control import Goaway, Waiting
from protocol.events import (
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    ReasoningEvent,
    RefusalEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
)
from protocol.view import TurnView

_PROMPT = "> "
_STATUS_CHARACTERS = 120


class Terminal:
    """Reads lines, shows answers."""

    def __init__(self, console: Console, *, descriptor: int) -> None:
        """Takes the two ends of the terminal.

        Args:
            console: Where to show.
            descriptor: Where to read lines.
        """
        self._console = console
        self._descriptor = descriptor
        self._turn: Turn | None = None
        self._live: LiveMarkdown | None = None

    async def run(
        self,
        *,
        url: str,
        token: str | None,
        model: str | None,
        conversation: str | None,
    ) -> int:
        """Chats until the input ends or the user leaves.

        Returns:
            The exit code: 0, or 1 where there was no conversation to be had.
        """
        try:
            async with connect(url, token=token, notify=self.noticed) as client:
                chat = await client.open(conversation, model=model)
                self._say(f"conversation {chat.conversation}")
                async with task_group() as tasks:
                    tasks.start_soon(self._obey_signals, tasks)
                    await self._converse(chat)
        except ClientError as error:
            self._warn(str(error))
            return 1
        return 0

    def noticed(self, notice: Notice) -> None:
        """Shows what happens to the connection."""
        match notice:
            case Connected(resumed=True):
                self._say("connected again")
            case Disconnected():
                self._say(f"connection lost; next attempt in {notice.retry_in_s:.1f} s")
            case Goaway():
                self._say(f"the server goes away: {notice.reason}")
            case Waiting() if self._live is not None:
                phase = notice.phase.replace("_", " ")
                self._live.status = f"{phase}, {notice.elapsed_ms / 1000:.0f} s"
            case _:
                pass

    async def _converse(self, chat: Chat) -> None:
        for shown in chat.view.timeline:
            self._recall(shown)
        running = chat.running()
        if running is not None:
            await self._follow(chat, running, running.text)
        self._ask()
        async for line in lines(self._descriptor):
            if line.strip() == "/quit":
                return
            if line.strip():
                await self._follow(chat, chat.send(line), "")
            self._ask()

    async def _obey_signals(self, tasks: TaskGroup) -> None:
        """Stops the answer; leaves at the prompt, or where the answer goes on."""
        stopped: Turn | None = None
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if self._turn is None or self._turn is stopped:
                    self._console.print()
                    tasks.cancel_scope.cancel()
                    return
                stopped = self._turn
                tasks.start_soon(stopped.interrupt)

    async def _follow(self, chat: Chat, turn: Turn, so_far: str) -> None:
        """Shows a turn until it ends."""
        self._turn = turn
        try:
            with LiveMarkdown(self._console) as self._live:
                self._live.feed(without_controls(so_far))
                async for event in turn:
                    self._show(self._live, event)
        except ConversationResetError as error:
            self._say(str(error))
            for shown in chat.view.timeline:
                self._recall(shown)
        except StoppedError:
            raise
        except ClientError as error:
            self._warn(str(error))
        finally:
            self._turn = self._live = None
        if turn.view is not None and turn.view.proven is False:
            self._warn("the text received is not the text that the server keeps")

    def _show(self, live: LiveMarkdown, event: LogEvent) -> None:
        match event:
            case DeltaEvent() | RefusalEvent():
                live.status = ""
                live.feed(without_controls(event.text))
            case ReasoningEvent():
                thought = live.status + without_controls(event.text)
                live.status = thought.replace("\n", " ")[-_STATUS_CHARACTERS:]
            case ToolCallEvent():
                live.end_block()
                self._say(f"calls {event.name} {event.arguments}")
            case ToolResultEvent():
                self._say(f"{event.status}: {event.output}")
            case TurnErrorEvent():
                live.end_block()
                self._warn(f"{event.code}: {event.message}")
            case DoneEvent():
                live.end_block()
                self._say(_summary(event))
            case _:
                pass

    def _recall(self, shown: MessageEvent | TurnView) -> None:
        """Shows a part of the history."""
        if isinstance(shown, MessageEvent):
            self._console.print(
                Text(_PROMPT + without_controls(_plain(shown.content)), style="bold")
            )
        elif shown.status is not None:
            self._console.print(Markdown(without_controls(shown.text)))
            if shown.status != "completed":
                self._say(f"{shown.status} ({shown.reason})")

    def _ask(self) -> None:
        self._console.print(Text(_PROMPT, style="bold"), end="")

    def _say(self, message: str) -> None:
        self._console.print(Text(without_controls(message), style="dim"))

    def _warn(self, message: str) -> None:
        self._console.print(Text(without_controls(message), style="red"))


def _plain(content: Content) -> str:
    if isinstance(content, str):
        return content
    return " ".join(
        part.text if isinstance(part, TextPart) else "[image]" for part in content
    )


def _summary(done: DoneEvent) -> str:
    timing = done.timing
    parts = [] if done.status == "completed" else [f"{done.status} ({done.reason})"]
    if timing.ttft_ms is not None:
        parts.append(f"first token {timing.ttft_ms:.0f} ms")
    if timing.tokens_per_s is not None:
        parts.append(f"{timing.tokens_per_s:.0f} tokens/s")
    parts.append(f"{timing.total_ms / 1000:.1f} s")
    return " · ".join(parts)


async def chat(
    *, url: str, token: str | None, model: str | None, conversation: str | None
) -> int:
    """Runs the terminal client on this process's terminal; returns the exit code."""
    terminal = Terminal(Console(), descriptor=sys.stdin.fileno())
    return await terminal.run(
        url=url, token=token, model=model, conversation=conversation
    )
