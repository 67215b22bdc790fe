"""Conversations over a store and a provider, without sockets."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from protocol.control import ToolRequest, Waiting
from protocol.events import DoneEvent, LogEvent
from tests.fakes.timers import TaskTimers
from wsserver.auth.principal import Principal
from wsserver.engine.provider import Provider
from wsserver.log.committer import Committer
from wsserver.log.entry import compact
from wsserver.log.reading import read_whole
from wsserver.log.store import Store
from wsserver.stores.memory import MemoryStore
from wsserver.turns.alarms import Alarms
from wsserver.turns.clock import Clock
from wsserver.turns.conversation import Conversation
from wsserver.turns.directory import Directory
from wsserver.turns.retention import Retention
from wsserver.turns.services import ConversationLimits, Services, Target
from wsserver.turns.sweep import Sweep

ALICE = Principal(name="alice", space="alice")

_decode = msgspec.json.Decoder(LogEvent).decode


class LoopClock(Clock):
    """Goes with the event loop, whose time a test may let jump."""

    def now(self) -> float:
        return anyio.current_time()


class NoMetrics:
    """Counts nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class OneModel:
    """Every model but `none` is the given provider's."""

    default = "test"

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def names(self) -> list[str]:
        return ["test"]

    def resolve(self, name: str) -> Target | None:
        if "none" in name.split(":"):
            return None
        return Target(provider=self._provider, model=name)


class FakeViewer:
    """A viewer that was sent everything, and notes what it is asked."""

    def __init__(
        self, conversation: Conversation, connection: str = "c1", *handles: str
    ) -> None:
        self.connection = connection
        self.handles = frozenset(handles)
        self.requests: list[ToolRequest] = []
        self.waiting: list[Waiting] = []
        self.muted: list[int] = []
        self.sent: int | None = None
        self._conversation = conversation

    def sent_through(self) -> int:
        return self._conversation.log.stored if self.sent is None else self.sent

    def mute(self, turn: int) -> None:
        self.muted.append(turn)

    def request_tool(self, request: ToolRequest) -> None:
        self.requests.append(request)

    def show_waiting(self, frame: Waiting) -> None:
        self.waiting.append(frame)


class Rig:
    """Everything below the connections."""

    def __init__(
        self,
        directory: Directory,
        store: Store,
        services: Services,
        committer: Committer,
        sweep: Sweep,
    ) -> None:
        self.directory = directory
        self.sweep = sweep
        self.store = store
        self.services = services
        self.committer = committer

    async def conversation(self, name: str = "c") -> Conversation:
        key = ALICE.key(name)
        found = await self.directory.find(key)
        return found or (await self.directory.create(key, None, ALICE))[0]


@asynccontextmanager
async def rig(
    provider: Provider,
    store: Store | None = None,
    limits: ConversationLimits | None = None,
    interval_seconds: float = 0.0,
    retention: Retention | None = None,
    clock: Clock | None = None,
) -> AsyncGenerator[Rig]:
    """Makes a rig; what still runs at the end is cancelled."""
    store = store or MemoryStore()
    clock = clock or LoopClock()
    async with anyio.create_task_group() as tasks:
        committer = Committer(
            store,
            interval_seconds=interval_seconds,
            wall=clock.wall,
            metrics=NoMetrics(),
        )
        alarms = Alarms(TaskTimers(tasks))
        services = Services(
            models=OneModel(provider),
            limits=limits or ConversationLimits(),
            metrics=NoMetrics(),
            clock=clock,
            tasks=tasks,
            alarms=alarms,
            failing=lambda: committer.failing,
        )
        retention = retention or Retention()
        directory = Directory(store, committer, services, retention)
        sweep = Sweep(directory, store, committer, retention=retention, wall=clock.wall)
        tasks.start_soon(committer.run)
        yield Rig(directory, store, services, committer, sweep)
        tasks.cancel_scope.cancel()


async def events(conversation: Conversation) -> list[Any]:
    """Returns all events of a log, neighbouring text merged."""
    entries = compact(await read_whole(conversation.log, max_bytes=65_536))
    name = msgspec.json.encode(conversation.log.conversation)
    return [_decode(entry.frame(name)) for entry in entries]


async def done(conversation: Conversation) -> DoneEvent:
    """Waits until no turn runs; returns the last `done`."""
    with anyio.fail_after(1000):
        while conversation.state.live:
            await anyio.sleep(0.001)
    found = [
        event for event in await events(conversation) if isinstance(event, DoneEvent)
    ]
    return found[-1]
