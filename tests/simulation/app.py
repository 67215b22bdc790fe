"""A person's application: it sends, stops, runs tools, and folds what it is told."""

import random
from collections import Counter
from collections.abc import Callable

from protocol.client_events import (
    ClientEvent,
    DropConnection,
    Lost,
    Replied,
    Reset,
    Stopped,
)
from protocol.commands import Command, Open, Send
from protocol.content import Config, Tool
from protocol.control import Reply, ToolRequest
from protocol.events import Event, LogEvent
from protocol.fold import ConversationView
from tests.simulation.driver import Driver
from tests.simulation.host import Host
from tests.simulation.plan import Step

CONFIG = Config(tools=[Tool(name="t"), Tool(name="u", timeout_s=5.0)])
HANDLES = [["t", "u"], ["t"], []]
"""Which tools the first, second and third client runs."""

LET_GO = "the conversation was closed before it was open"


class App(Driver):
    """One client's application.

    Attributes:
        views: What it shows, by conversation.
        begins: After which number that begins.
        taken: The events that made it.
        given: Its commands.
        replies: What they got.
        runs: How often it ran which call.
        requests: What it was asked to run.
        with_tool_deltas: Which conversations it has with streamed arguments.
    """

    def __init__(
        self,
        number: int,
        names: list[str],
        host: Host,
        chance: random.Random,
        report: Callable[[str], None],
    ) -> None:
        super().__init__(f"p{number}", host, chance)
        self.views: dict[str, ConversationView] = {}
        self.begins: dict[str, int] = {}
        self.taken: dict[str, list[LogEvent]] = {}
        self.given: list[Command] = []
        self.replies: dict[str, list[Reply]] = {}
        self.runs: Counter[tuple[str, str]] = Counter()
        self.requests: list[ToolRequest] = []
        self.with_tool_deltas: dict[str, bool] = {}
        self._names = names
        self._windows: set[str] = set()  # conversations whose events are acknowledged
        self._handles = HANDLES[number]
        self._report = report
        self._calm = False

    @property
    def at_rest(self) -> bool:
        """Whether it has all it wants and nothing is due."""
        return self.idle and all(name in self.views for name in self._names)

    def begin(self) -> None:
        """Opens what it shall have open."""
        for name in self._names:
            self._open(name)

    def hold(self) -> None:
        """From here on nothing fails at this end."""
        self._calm = True
        self.read(True)
        if self.link is not None:
            self.link.disarm()

    # What the person does

    def step(self, step: Step) -> None:
        """Does a step of the plan."""
        chance = random.Random(step.chance)
        name = self._names[step.conversation % len(self._names)]
        match step.do:
            case "send":
                self.send(name, chance)
            case "interrupt":
                self._interrupt(name, chance)
            case "cut":
                if self.link is not None and not self._calm:
                    self.link.cut(chance)
            case "stall":
                if not self._calm:
                    self.read(False)
                    self.after(chance.choice([0.5, 5.0, 45.0]), lambda: self.read(True))
            case "close":
                self._give(self.client.close(name))
                self._forget(name)
                self.after(chance.choice([0, 1, 20]), lambda: self._open(name))
            case "open":
                self._open(name)
            case _:
                raise AssertionError(f"{step.do} is not for a client")

    def send(self, name: str, chance: random.Random) -> None:
        """Says something."""
        view = self.views.get(name)
        policies = ["queue", "queue", "queue", "interrupt", "steer", "reject"]
        self._give(
            self.client.send(
                name,
                f"{name} hears {len(self.given)} of {self.name}",
                policy=chance.choice(policies),  # pyright: ignore[reportArgumentType]
                seen_seq=chance.choice([None, view.last if view else 0]),
                on_disconnect=chance.choice([None, None, None, "continue", "cancel"]),
            )
        )

    def _interrupt(self, name: str, chance: random.Random) -> None:
        view = self.views.get(name)
        last = view.last if view else 0
        turn = view.running.turn if view and view.running else None
        send: str | None = None
        sends = [
            one.id
            for one in self.given
            if isinstance(one, Send) and one.conversation == name
        ]
        match chance.randrange(4):
            case 0:
                turn = None
            case 1 if sends:
                turn, send = None, chance.choice(sends[-3:])
            case 2 if view and view.turns:
                turn = chance.choice(list(view.turns))
            case _:
                pass
        keep = chance.choice([None, None, "seen", "sent", "generated", "none"])
        seen = chance.choice([None, last, chance.randint(0, last), last + 99])
        self._give(
            self.client.interrupt(name, turn=turn, send=send, keep=keep, seen_seq=seen)  # pyright: ignore[reportArgumentType]
        )

    def _open(self, name: str) -> None:
        chance = self._chance
        if name not in self.views:
            self.with_tool_deltas[name] = chance.random() < 0.3
        if name not in self.views:
            self._begin(name, 0)
        window = chance.choice([None, None, None, 1024, 9000])
        if window is not None:
            self._windows.add(name)
        self._give(
            self.client.open(
                name,
                config=CONFIG,
                handles=self._handles,
                view=chance.choice(["merged", "merged", "merged", "frames"]),
                include=["tool_delta"] if self.with_tool_deltas[name] else [],
                window_bytes=window,
                max_delay_ms=chance.choice([None, None, None, 0, 60, 1500]),
            )
        )

    def _begin(self, name: str, after: int) -> None:
        self.views[name] = ConversationView(last=after)
        self.begins[name] = after
        self.taken[name] = []

    def _forget(self, name: str) -> None:
        self.views.pop(name, None)
        self.taken.pop(name, None)

    @property
    def unreplied(self) -> int:
        return sum(not self.replies.get(command.id) for command in self.given)

    def _again(self, command: Command) -> None:
        self.replies[command.id].pop()
        self.client.again(command)
        self.wake()

    def _give(self, command: Command) -> None:
        self.given.append(command)
        self.wake()

    # What the machine tells

    def handle(self, event: ClientEvent) -> None:
        match event:
            case Event():
                self._take(event)
            case Replied():
                self._replied(event)
            case ToolRequest():
                self._run_tool(event)
            case DropConnection():
                if event.why == "gap":
                    self._wrong("met a gap that does not close")
                self.drop()
            case Reset(reason="expired"):
                self._begin(event.cursor.conversation, event.cursor.last)
            case Reset() | Stopped() | Lost():
                self._wrong(f"was told {event}")
            case _:
                pass

    def _take(self, event: LogEvent) -> None:
        name = event.conversation
        if not self.views[name].apply(event):
            self._wrong(f"was told twice: {event}")
        self.taken[name].append(event)
        if name not in self._windows:
            return
        if self._chance.random() < 0.7:
            self.client.ack(name)
        else:
            self.after(0.5, lambda: self.client.ack(name))

    def _replied(self, event: Replied) -> None:
        command, error = event.command, event.reply.error
        self.replies.setdefault(command.id, []).append(event.reply)
        if error is None:
            if isinstance(command, Open):
                self._opened(event.reply)
            return
        if not isinstance(command, Open):
            if error.code == "store_unavailable":
                # It may have been done: only the same id can tell.
                self.after(1.0, lambda: self._again(command))
            return
        name = command.conversation
        assert name is not None, "the machine names every conversation"
        if error.code == "store_unavailable":
            self._forget(name)
            self.after(1.0, lambda: self._open(name))
        elif error.message != LET_GO:
            self._wrong(f"could not open: {event}")

    def _opened(self, reply: Reply) -> None:
        """Begins with the oldest number that is kept, if this has nothing yet."""
        name, oldest = reply.conversation, reply.oldest
        assert name is not None, "it says of which conversation"
        assert isinstance(oldest, int), "and where that begins"
        if name in self.views and not self.views[name].last:
            self._begin(name, oldest - 1)

    def _run_tool(self, request: ToolRequest) -> None:
        """Runs a tool: it answers once or twice, soon, late, or never."""
        self.requests.append(request)
        key = (request.conversation, request.call)
        self.runs[key] += 1
        kind = self._chance.random()
        if kind >= 0.95:
            for beat in range(1, 5):
                self.after(4.0 * beat, lambda: self._live(key))
            self.after(17.0, lambda: self._answer(key, kind))
        elif kind >= 0.92:
            self.after(30.0, lambda: self._answer(key, kind))
        elif kind < 0.9:
            takes = 0.0 if self._calm else 2.0 * self._chance.expovariate(1.0)
            self.after(takes, lambda: self._answer(key, kind))

    def _answer(self, key: tuple[str, str], kind: float) -> None:
        if kind < 0.1:
            self._give(self.client.tool_result(*key, error="it broke"))
            return
        output = {"result": self._chance.randrange(5)}
        self._give(self.client.tool_result(*key, output=output))
        if kind < 0.2:
            self._give(self.client.tool_result(*key, output=output))
        elif kind < 0.25:
            self._give(self.client.tool_result(*key, output="another"))

    def _live(self, key: tuple[str, str]) -> None:
        self.client.tool_progress(*key)
        self.wake()

    def _wrong(self, what: str) -> None:
        self._report(f"{self.name} {what}")
