"""No view stands still, wherever a trim falls: random stories of several connections.

A client that the server has nothing more for has either all there is, or was told
that it has to open again. The store is let go read by read, before it looks and before
what it saw arrives.
"""

from math import ceil
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.connections.characters import FAMILY
from tests.connections.journal import Desk, Disk, Journal, desk, play, settle
from wsserver.connections import gathering, viewer
from wsserver.connections.gates import Held
from wsserver.connections.gathering import LONGEST_SECONDS
from wsserver.connections.verdict import Cursor, verdict
from wsserver.connections.viewer import View
from wsserver.log.entry import Entry

MOST_ROUNDS = 300
LOGS = ("c", "d")
DESKS = 2
TEXTS = ["a ", "b" * 30, "c" * 200, *FAMILY]
KINDS = ["delta", "delta", "reasoning", "tool_delta"]

Step = tuple[Any, ...]
"""The name of a method of `Story`, and its arguments."""

log = st.integers(0, len(LOGS) - 1)
client = st.integers(0, DESKS * len(LOGS) - 1)
texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6)
how_far = st.sampled_from(["appended", "stored", "left_memory", "left_memory"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), log, st.sampled_from(KINDS), texts, how_far),
        st.tuples(st.just("trim"), log, st.sampled_from([0.4, 1.0, 1.0]), how_far),
        st.tuples(st.just("run"), st.sampled_from([1, 2, 3, 5, 30])),
        st.tuples(st.just("wait"), st.sampled_from([0.01, 0.11, 1.2])),
        st.tuples(st.sampled_from(["stall", "flow"]), st.integers(0, DESKS - 1)),
        st.tuples(st.sampled_from(["hold_reads", "let_a_read_go_on", "let_reads_go"])),
        st.tuples(st.just("fail_a_read")),
        st.tuples(
            st.just("client"), st.sampled_from(["ack", "flush", "open", "mute"]), client
        ),
    ),
    min_size=5,
    max_size=40,
)
options = st.fixed_dictionaries(
    {},
    optional={
        "frames": st.booleans(),
        "tool_deltas": st.booleans(),
        "window_bytes": st.sampled_from([100, 1024]),
        "max_delay_seconds": st.sampled_from([0.0, 0.1, 1.5]),
    },
)


class SteppedDisk(Disk):
    """Lets a read go on step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.holding = False
        self._step = anyio.Event()

    def step(self) -> None:
        step, self._step = self._step, anyio.Event()
        step.set()

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        await self._wait()
        rows = await super().read(key, after, max_bytes)
        await self._wait()
        return rows

    async def _wait(self) -> None:
        if self.holding:
            await self._step.wait()


class Client:
    """What the other end makes of a view, and that it was told no nonsense."""

    def __init__(self, d: Desk, journal: Journal, options: dict[str, Any]) -> None:
        self.d = d
        self.journal = journal
        self.name = journal.log.conversation
        self.last = 0
        self.opens = 0
        self.replies = 0
        self.flushes = 0
        self.view: View | None = None
        self._options = options
        self.open()

    def open(self) -> None:
        if self.view is not None:
            self.view.close()
        self.opens += 1
        self.attached = self.must_open = self.caught_up = False
        log = self.journal.log
        judged = verdict(
            Cursor(after=self.last),
            epoch=log.epoch,
            head=log.stored,
            oldest=log.oldest,
        )
        self.last = judged.after
        opened = b'{"type":"opened","conversation":"%b","n":%d}'
        self.d.writer.answer(opened % (self.name.encode(), self.opens))
        self.view = self.d.view(self.journal, after=judged.after, **self._options)

    def take(self, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "opened":
                self.attached = frame["n"] == self.opens
            case "reply":
                self.replies += 1
            case _ if self.attached:
                self._take(frame)

    def _take(self, frame: dict[str, Any]) -> None:
        seq = frame["seq"]
        first = frame.get("first", seq)
        if frame["type"] == "caught_up":
            assert seq > self.last or not self.caught_up, "caught up twice"
            self.caught_up = True
            missing = seq > self.last
        else:
            assert first > self.last, f"{frame} after {self.last}"
            missing = first != self.last + 1
        if missing:
            assert self.last < self.journal.log.oldest - 1, f"{frame} after {self.last}"
            self.attached, self.must_open = False, True
        else:
            self.last = seq

    @property
    def has_all(self) -> bool:
        return self.caught_up and self.last == self.journal.log.stored

    def ack(self) -> None:
        assert self.view is not None
        self.view.ack(self.last)

    def flush(self) -> None:
        assert self.view is not None
        through = self.journal.log.head
        self.flushes += 1
        self.view.flush(through)
        reply = b'{"type":"reply","conversation":"%b"}' % self.name.encode()
        held = Held(
            frame=reply, changes=0, re="r", view=self.view, sent_through=through
        )
        self.d.writer.gates.hold(self.journal.log, held)

    def mute(self) -> None:
        assert self.view is not None
        self.view.mute(1)

    def __repr__(self) -> str:
        return f"{self.name}: {self.last} of {self.journal.log.stored}, {self._options}"


class Story:
    def __init__(
        self, desks: list[Desk], journals: list[Journal], options: list[dict[str, Any]]
    ) -> None:
        self.desks = desks
        self.journals = journals
        disk = journals[0].disk
        assert isinstance(disk, SteppedDisk)
        self.disk = disk
        pairs = [(d, journal) for d in desks for journal in journals]
        self.clients = [
            Client(d, journal, members)
            for (d, journal), members in zip(pairs, options, strict=True)
        ]

    async def do(self, step: Step) -> None:
        what, *about = step
        await getattr(self, what)(*about)
        self._hear()

    async def say(self, log: int, kind: str, texts: list[str], how_far: str) -> None:
        self.journals[log].say(*texts, kind=kind)
        await self._commit(self.journals[log], how_far)

    async def trim(self, log: int, portion: float, how_far: str) -> None:
        made = self.journals[log].log
        kept = made.stored - made.oldest + 1
        if kept:
            made.trim(made.oldest - 1 + ceil(portion * kept))
        await self._commit(self.journals[log], how_far)

    async def run(self, turns: int) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()

    async def wait(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def stall(self, number: int) -> None:
        self.desks[number].fill()

    async def flow(self, number: int) -> None:
        self.desks[number].wire.flow()

    async def hold_reads(self) -> None:
        self.disk.holding = True

    async def let_a_read_go_on(self) -> None:
        self.disk.step()

    async def let_reads_go(self) -> None:
        self.disk.holding = False
        self.disk.step()

    async def fail_a_read(self) -> None:
        self.disk.faults += 1

    async def client(self, what: str, number: int) -> None:
        getattr(self.clients[number], what)()

    async def _commit(self, journal: Journal, how_far: str) -> None:
        if how_far == "stored":
            await journal.commit()
        elif how_far == "left_memory":
            await journal.leave_memory()

    def _hear(self) -> bool:
        """Lets the clients take what came; says whether anything did."""
        heard = False
        for number, d in enumerate(self.desks):
            mine = self.clients[number * len(LOGS) : (number + 1) * len(LOGS)]
            for frame in d.got():
                heard = True
                for one in mine:
                    if frame.get("conversation") == one.name:
                        one.take(frame)
        return heard

    async def quiet(self) -> None:
        """Nothing happens any more, nothing is in the way, and all have read."""
        self.disk.faults = 0
        await self.let_reads_go()
        for journal in self.journals:
            await journal.commit()
        for number in range(len(self.desks)):
            await self.flow(number)
        await self._read_all()
        await anyio.sleep(2 * LONGEST_SECONDS)
        await self._read_all()
        reads = len(self.disk.reads)
        await settle()
        assert len(self.disk.reads) == reads, "the store is asked again and again"
        for one in self.clients:
            assert one.must_open or one.has_all, f"{one} stands still"
            assert one.replies == one.flushes, f"{one} waits for a reply"

    async def _read_all(self) -> None:
        silences = 0
        for _ in range(MOST_ROUNDS):
            await settle()
            silences = 0 if self._hear() else silences + 1
            if silences > 1:
                return
            for one in self.clients:
                one.ack()
        raise AssertionError("it does not end")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes, so that all that depends on them happens."""
    monkeypatch.setattr(viewer, "BLOCK_BYTES", 100)
    monkeypatch.setattr(gathering, "MOST_BYTES", 250)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps,
    options=st.lists(options, min_size=DESKS * len(LOGS), max_size=DESKS * len(LOGS)),
)
def test_no_view_stands_still(steps: list[Step], options: list[dict[str, Any]]) -> None:
    play("trio", story, steps, options)


async def story(steps: list[Step], options: list[dict[str, Any]]) -> None:
    disk = SteppedDisk()
    journals = []
    for name in LOGS:
        journal = await Journal(disk, name).told("early ", "👨")
        journals.append(await (await journal.told("\u200d👩", "!")).forgotten())
    async with desk() as first, desk() as second:
        told = Story([first, second], journals, options)
        for step in steps:
            await told.do(step)
        await told.quiet()
        for one in told.clients:
            if one.must_open:
                one.open()
        await told.quiet()
        assert all(one.has_all for one in told.clients)
