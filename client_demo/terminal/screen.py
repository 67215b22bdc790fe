"""How the terminal shows a conversation: its history, and a turn as it comes."""

from collections.abc import Sequence

import anyio
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from client_demo.live_markdown import LiveMarkdown, Trimmed
from client_demo.terminal.desk import plain
from protocol.control import Waiting
from protocol.control_characters import without_controls
from protocol.events import (
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    ReasoningEvent,
    RefusalEvent,
    StartEvent,
    TakeoverEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
)
from protocol.view import TurnView

PROMPT = "> "
LOG_IS_ANOTHER = "the server's log of it is not the one from last time"
_STATUS_CHARACTERS = 120
_OUTPUT_CHARACTERS = 500


class _Wait(Struct, frozen=True, kw_only=True):
    """What is waited for, and since when on the loop's clock."""

    what: str
    began_at: float


class Screen:
    """Shows text that others wrote without letting it move the cursor."""

    def __init__(self, console: Console) -> None:
        """Takes where to show."""
        self.console = console
        self._live: LiveMarkdown | None = None
        self._wait: _Wait | None = None

    def say(self, message: str) -> None:
        """Tells what the program does."""
        self.console.print(Text(without_controls(message), style="dim"))

    def warn(self, message: str) -> None:
        """Tells what went wrong."""
        self.console.print(Text(without_controls(message), style="red"))

    def prompt(self) -> None:
        """Shows that a line may be typed."""
        self.console.print(Text(PROMPT, style="bold"), end="")

    def recall(self, timeline: Sequence[MessageEvent | TurnView]) -> None:
        """Shows a part of the history."""
        for shown in timeline:
            if isinstance(shown, MessageEvent):
                said = without_controls(plain(shown.content))
                self.console.print(Text(PROMPT + said, style="bold"))
            elif shown.status is not None:
                self._recall_turn(shown)

    def _recall_turn(self, turn: TurnView) -> None:
        """Shows a turn that has ended, its calls where they were made."""
        for part in turn.parts():
            if isinstance(part, str):
                self._markdown(part)
            else:
                self.say(f"called {part.name} {part.arguments or ''}: {part.status}")
        if turn.status != "completed":
            self.say(f"{turn.status} ({turn.reason})")

    def _markdown(self, source: str) -> None:
        if source.strip():
            self.console.print(Trimmed(without_controls(source)), end="")

    def begin(self) -> LiveMarkdown:
        """Makes the place of a turn, for a `with` block."""
        self._live = LiveMarkdown(self.console)
        return self._live

    def end(self) -> None:
        """The turn's block was left."""
        self._live = self._wait = None

    def waiting(self, notice: Waiting) -> None:
        """Shows what the turn waits for."""
        if self._live is not None:
            began_at = anyio.current_time() - notice.elapsed_ms / 1000
            phase = notice.phase.replace("_", " ")
            self._wait = _Wait(what=phase, began_at=began_at)
            self._show_wait(self._live)

    async def keep_waiting(self, live: LiveMarkdown) -> None:
        """Counts the seconds of a wait, until cancelled."""
        while True:
            await anyio.sleep(1)
            self._show_wait(live)

    def _show_wait(self, live: LiveMarkdown) -> None:
        if self._wait is not None:
            seconds = anyio.current_time() - self._wait.began_at
            live.status = f"{self._wait.what}, {seconds:.0f} s"

    def show(self, live: LiveMarkdown, event: LogEvent) -> None:
        """Shows an event of the turn."""
        if self._wait is not None and not isinstance(event, StartEvent):
            self._wait, live.status = None, ""
        match event:
            case StartEvent():
                what = f"waiting for {without_controls(event.model)}"
                self._wait = _Wait(what=what, began_at=anyio.current_time())
            case DeltaEvent() | RefusalEvent():
                live.status = ""
                live.feed(without_controls(event.text))
            case ReasoningEvent():
                thought = live.status + without_controls(event.text)
                live.status = thought.replace("\n", " ")[-_STATUS_CHARACTERS:]
            case TakeoverEvent():
                live.end_block()
                self.say(f"{event.model} takes over")
            case ToolCallEvent():
                live.end_block()
                self.say(f"calls {event.name} {event.arguments}")
            case ToolResultEvent():
                self.say(f"{event.status}: {str(event.output)[:_OUTPUT_CHARACTERS]}")
            case TurnErrorEvent():
                live.end_block()
                self.warn(f"{event.code}: {event.message}")
            case DoneEvent():
                live.end_block()
                self.say(_summary(event))
            case _:
                pass


def _summary(done: DoneEvent) -> str:
    timing = done.timing
    parts = [] if done.status == "completed" else [f"{done.status} ({done.reason})"]
    if timing.ttft_ms is not None:
        parts.append(f"first token {timing.ttft_ms:.0f} ms")
    if timing.tokens_per_s is not None:
        parts.append(f"{timing.tokens_per_s:.0f} tokens/s")
    if timing.stop_ms is not None:
        parts.append(f"stopped in {timing.stop_ms:.0f} ms")
    if done.reason != "server_restarted":  # which does not know how long it ran
        parts.append(f"{timing.total_ms / 1000:.1f} s")
    return " · ".join(parts)
