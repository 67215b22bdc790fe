"""A person's application: it sends, stops, runs tools, and folds what it is told."""

import random
from collections import Counter
from collections.abc import Callable

from protocol.client.events import (
    ClientEvent,
    DropConnection,
    Lost,
    Replied,
    Reset,
    Stopped,
)
from protocol.commands import Command, Delete, Fork, Open, Send
from protocol.content import Config, ErrorBody, Tool
from protocol.control import Reply, ToolRequest
from protocol.events import Event, LogEvent, first_seq
from protocol.fold import ConversationView
from tests.simulation.changes import Repeats, change, through
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
        names: The conversations that it has open, or shall have.
        views: What it shows, by conversation.
        taken: The events that made it.
        given: Its commands.
        replies: What they got.
        runs: How often it ran which call of a conversation's epoch.
        requests: What it was asked to run, in which epoch.
        with_tool_deltas: Which conversations it has with streamed arguments.
    """

    def __init__(
        self,
        number: int,
        names: list[str],
        host: Host,
        chance: random.Random,
        report: Callable[[str], None],
        *,
        changes: bool = False,
    ) -> None:
        super().__init__(f"p{number}", host, chance)
        self.views: dict[str, ConversationView] = {}
        self.taken: dict[str, list[LogEvent]] = {}
        self.given: list[Command] = []
        self.replies: dict[str, list[Reply]] = {}
        self.runs: Counter[tuple[str, str, str]] = Counter()
        self.requests: list[tuple[str, ToolRequest]] = []
        self.with_tool_deltas: dict[str, bool] = {}
        self.names = names
        self._changes = changes  # whether conversations come and go
        self._repeats = Repeats(host.lives, report)
        self._windows: set[str] = set()  # conversations whose events are acknowledged
        self._handles = HANDLES[number]
        self._report = report
        self._calm = False

    @property
    def at_rest(self) -> bool:
        """Whether it has all it wants and nothing is due."""
        return self.idle and all(name in self.views for name in self.names)

    def last(self, name: str) -> int:
        """Returns the last number that it has of a conversation, or that it lacks."""
        cursor = self.client.cursor(name)
        return max(self.views[name].last, cursor.last if cursor else 0)

    def begin(self) -> None:
        """Opens what it shall have open."""
        for name in self.names:
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
        name = self.names[step.conversation % len(self.names)]
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
            case "fork" | "delete" | "configure" | "again":
                self._change(step, name, chance)
            case _:
                raise AssertionError(f"{step.do} is not for a client")

    def _change(self, step: Step, name: str, chance: random.Random) -> None:
        match step.do:
            case "fork":
                self._fork(name, chance)
            case "delete":
                self._delete(self.client.delete(name), chance.choice([0, 0, 1, 20]))
            case "configure":
                self._give(self.client.configure(name, change(chance)))
            case _:
                command = self._repeats.choose(
                    self.given, self.replies, chance, self.name
                )
                if command is not None:
                    self.replies[command.id] = []
                    self.client.again(command)
                    self.wake()

    def send(self, name: str, chance: random.Random) -> None:
        """Says something."""
        view = self.views.get(name)
        policies = ["queue", "queue", "queue", "interrupt", "steer", "reject"]
        if self._changes:
            policies += ["steer", "steer", "interrupt"]
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

    def _fork(self, name: str, chance: random.Random) -> None:
        mine = f"{self.name}f{len(self.given)}"
        new = chance.choice([mine, mine, mine, None, chance.choice(self.names)])
        view = self.views.get(name) or ConversationView()
        self._give(self.client.fork(name, through(view, chance), new=new))

    def _delete(self, command: Delete, away_seconds: float) -> None:
        """Deletes a conversation, and has one of that name again in a while."""
        name = command.conversation
        self._give(command)
        self._forget(name)
        self.after(away_seconds, lambda: self._open(name))

    def _open(self, name: str) -> None:
        chance = self._chance
        if name not in self.views:
            self.with_tool_deltas[name] = chance.random() < 0.3
        self.views.setdefault(name, ConversationView())
        self.taken.setdefault(name, [])
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

    def _forget(self, name: str) -> None:
        self.views.pop(name, None)
        self.taken.pop(name, None)

    @property
    def unreplied(self) -> int:
        return sum(not self.replies.get(command.id) for command in self.given)

    def _again(self, command: Command) -> None:
        self.replies[command.id].pop()
        self.client.again(command)
        if isinstance(command, Delete):  # what was opened meanwhile is let go with it
            self._forget(command.conversation)
            self.after(0.0, lambda: self._open(command.conversation))
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
            case Reset() if self._changes:
                name = event.cursor.conversation
                self._forget(name)
                self.views[name] = ConversationView(last=event.cursor.last)
                self.taken[name] = []
            case Lost() if self._changes:
                self._come_back(event.conversation, self._chance.choice([0, 1, 20]))
            case Reset() | Stopped() | Lost():
                self._wrong(f"was told {event}")
            case _:
                pass

    def _take(self, event: LogEvent) -> None:
        name = event.conversation
        if not self.taken[name] and not self.views[name].last:
            # Without a cursor it begins with what is kept.
            self.views[name].last = first_seq(event) - 1
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
        if self._repeats.replied(command, event.reply, self.replies):
            return
        self.replies.setdefault(command.id, []).append(event.reply)
        if isinstance(command, Open) and error is not None:
            self._not_opened(command, error)
        elif error is not None and error.code == "store_unavailable":
            # It may have been done: only the same id can tell.
            self.after(1.0, lambda: self._again(command))
        elif isinstance(command, Fork) and event.reply.conversation is not None:
            name = event.reply.conversation
            if name not in self.names:
                self.names.append(name)
                self._open(name)

    def _not_opened(self, command: Open, error: ErrorBody) -> None:
        name = command.conversation
        assert name is not None, "the machine names every conversation"
        gone = self._changes and error.code == "conversation_not_found"
        if error.message == LET_GO:
            return
        if error.code == "store_unavailable" or gone:
            self._come_back(name, 1.0)
        else:
            self._wrong(f"could not open {name}: {error}")

    def _come_back(self, name: str, away_seconds: float) -> None:
        self._forget(name)
        self.after(away_seconds, lambda: self._open(name))

    def _run_tool(self, request: ToolRequest) -> None:
        """Runs a tool: it answers once or twice, soon, late, or never."""
        cursor = self.client.cursor(request.conversation)
        if cursor is None:
            self._wrong(f"was asked to run a tool of what is not open: {request}")
            return
        self.requests.append((cursor.epoch, request))
        key = (request.conversation, request.call)
        self.runs[request.conversation, cursor.epoch, request.call] += 1
        kind = self._chance.random()
        if kind >= 0.95:
            for beat in range(1, 5):
                self.after(4.0 * beat, lambda: self._live(key))
            self.after(17.0, lambda: self._answer(key, cursor.epoch, kind))
        elif kind >= 0.92:
            self.after(30.0, lambda: self._answer(key, cursor.epoch, kind))
        elif kind < 0.9:
            takes = 0.0 if self._calm else 2.0 * self._chance.expovariate(1.0)
            self.after(takes, lambda: self._answer(key, cursor.epoch, kind))

    def _answer(self, key: tuple[str, str], epoch: str, kind: float) -> None:
        if kind < 0.1:
            self._give(self.client.tool_result(*key, error="it broke"))
            return
        output = {"result": self._chance.randrange(5), "epoch": epoch}
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
