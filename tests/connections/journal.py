"""Real logs over a real store that are committed by hand, and views of them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import trio.testing

from tests.connections.wire import Wire
from tests.fakes.rig import NoMetrics
from tests.fakes.timers import TaskTimers
from wsserver.connections.fetcher import Fetcher
from wsserver.connections.lane import ControlLane
from wsserver.connections.viewer import View, ViewOptions
from wsserver.connections.writer import Writer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, StoreError
from wsserver.stores.memory import MemoryStore
from wsserver.turns.alarms import Alarms

NEW = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")


class Disk(MemoryStore):
    """Outlives the process, for all that a log can tell; can be slow or broken."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = True
        self.reads: list[str] = []
        self.faults = 0
        self.slow: dict[str, anyio.Event] = {}

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self.reads.append(key)
        if key in self.slow:
            await self.slow[key].wait()
        if self.faults:
            self.faults -= 1
            raise StoreError("no")
        return await super().read(key, after, max_bytes)


class GatedDisk(Disk):
    """Commits only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.gate.set()

    async def commit(self, writes: Any, now: float) -> None:
        await self.gate.wait()
        await super().commit(writes, now)

    def hold(self) -> anyio.Event:
        self.gate = anyio.Event()
        return self.gate


class CountingLog(ConversationLog):
    """Knows how often it was read."""

    reads = 0

    def read(self, after: int, max_bytes: int) -> list[Entry] | None:
        self.reads += 1
        return super().read(after, max_bytes)


class Journal:
    """A log that is committed by hand.

    Attributes:
        hurries: How often somebody wanted that soon.
    """

    def __init__(self, disk: Disk, name: str = "c", meta: Meta = NEW) -> None:
        self.disk = disk
        self.hurries = 0
        self.log = CountingLog(
            f"s/{name}",
            meta,
            disk,
            lambda _: None,
            lambda: (b"", False),
            hurry=self._hurry,
        )

    def _hurry(self) -> None:
        self.hurries += 1

    @property
    def reads(self) -> int:
        return self.log.reads

    def say(self, *texts: str, kind: str = "delta", turn: int = 1) -> None:
        attrs = b'"call":"k","name":"t",' if kind == "tool_delta" else b""
        for text in texts:
            self.log.append_text(kind, turn, text, attrs)

    async def commit(self) -> None:
        write = self.log.take_write()
        await self.disk.commit([write], 0.0)
        self.log.committed(write)

    async def leave_memory(self) -> None:
        """Commits, so that nothing but the store has it."""
        self.log.keep_from(self.log.head + 1)
        self.log.compact_soon()
        await self.commit()
        assert self.log.tail(1) == []

    async def told(self, *texts: str, **members: Any) -> "Journal":
        self.say(*texts, **members)
        await self.commit()
        return self

    async def forgotten(self) -> "Journal":
        """Returns the same log as after a restart: nothing of it in memory."""
        meta = await self.disk.meta(self.log.key)
        assert meta is not None
        return Journal(self.disk, self.log.conversation, meta)


class Desk:
    """A writer with views, over a wire."""

    def __init__(self, tasks: Any, high_water_bytes: int = 65_536) -> None:
        self.alarms = Alarms(TaskTimers(tasks))
        self.wire = Wire()
        self.overfull = 0
        self._fetcher = Fetcher(tasks)
        self.writer = Writer(
            self.wire,
            lane=ControlLane(
                max_frames=1000, max_answer_bytes=2**20, overfull=self._overfull
            ),
            high_water_bytes=high_water_bytes,
            start_soon=tasks.start_soon,
            metrics=NoMetrics(),
        )
        self.deleted: list[View] = []

    def _overfull(self) -> None:
        self.overfull += 1

    def view(self, journal: Journal, after: int = 0, **options: Any) -> View:
        view = View(
            connection="conn1",
            log=journal.log,
            after=after,
            options=ViewOptions(**options),
            gates=self.writer.gates,
            push=self.writer.push,
            alarms=self.alarms,
            on_wake=self.writer.mark,
            on_starved=self._fetcher.fetch,
            on_deleted=self._deleted,
        )
        journal.log.subscribe(view.wake)
        view.wake()
        return view

    def fill(self) -> None:
        """From now on nothing more can be written, until the wire's `flow`."""
        self.wire.stall()
        self.writer.push(b'{"type":"filler","text":"%b"}' % (b"x" * 2**17))

    def _deleted(self, view: View) -> None:
        self.deleted.append(view)
        view.close()

    def got(self) -> list[dict[str, Any]]:
        """Returns the frames that the peer got since the last call."""
        frames = [msgspec.json.decode(frame) for frame in self.wire.frames]
        self.wire.frames.clear()
        return frames


@asynccontextmanager
async def desk(high_water_bytes: int = 65_536) -> AsyncGenerator[Desk]:
    """Runs a writer."""
    async with anyio.create_task_group() as tasks:
        made = Desk(tasks, high_water_bytes)
        made.writer.begin()
        try:
            yield made
        finally:
            made.writer.end()
        tasks.cancel_scope.cancel()


async def settle() -> None:
    """Lets every task run until it waits."""
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


def numbers(frames: Iterable[dict[str, Any]], conversation: str = "c") -> list[int]:
    """Returns the numbers that the events of a conversation stand for."""
    return [
        number
        for frame in frames
        if frame.get("conversation") == conversation and frame["type"] != "caught_up"
        for number in range(frame.get("first", frame["seq"]), frame["seq"] + 1)
    ]


def text(frames: Iterable[dict[str, Any]], conversation: str = "c") -> str:
    """Returns the answer text of a conversation."""
    return "".join(
        frame["text"]
        for frame in frames
        if frame["type"] == "delta" and frame["conversation"] == conversation
    )


def play(backend: str, story: Callable[..., Awaitable[None]], *args: Any) -> None:
    """Runs one example of a property test under a backend, trio's clock jumping."""
    options = {}
    if backend == "trio":
        options["clock"] = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(story, *args, backend=backend, backend_options=options)
