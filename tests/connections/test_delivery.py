"""Whatever stalls, breaks or is opened again: each number once, in order, exact.

Random stories of a few clients and conversations. A model of a client checks
each frame when it comes; at the end everybody has read the same.
"""

from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.connections.journal import Disk, play
from tests.connections.wire import Client, connected, limited
from tests.fakes.rig import Rig, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.open import LOCAL

NAMES = ("c0", "c1", "c2")
QUICK = limited(frames_burst=100_000, frames_per_second=100_000)


class Copy:
    """What a client has of one conversation."""

    def __init__(self) -> None:
        self.last = 0
        self.text = ""
        self.epoch: str | None = None
        self.awaited: str | None = None  # the `open` whose reply is not there yet
        self.catch_up_at: int | None = None

    def open(self, frame: dict[str, Any]) -> None:
        assert frame["ok"], frame
        if frame["outcome"] != "replay":
            assert frame["outcome"] == "created", "nothing is ever lost here"
        self.epoch, self.awaited = frame["epoch"], None
        self.catch_up_at = frame["head"]

    def event(self, frame: dict[str, Any]) -> None:
        if self.awaited is not None:
            return
        assert frame.get("first", frame["seq"]) == self.last + 1, "it fits"
        self.last = frame["seq"]
        if frame["type"] == "delta":
            self.text += frame["text"]
        assert self.catch_up_at is None or self.last <= self.catch_up_at, (
            "`caught_up` comes before what is live"
        )

    def caught_up(self, frame: dict[str, Any]) -> None:
        if self.awaited is None:
            assert frame["seq"] == self.last == self.catch_up_at
            self.catch_up_at = None


class Reader:
    """A client that follows conversations and comes back."""

    def __init__(self, r: Rig, stack: AsyncExitStack, name: str) -> None:
        self.copies: defaultdict[str, Copy] = defaultdict(Copy)
        self._r = r
        self._stack = stack
        self._name = name
        self._count = 0
        self.client: Client

    async def connect(self) -> None:
        self._count += 1
        self.client = await self._stack.enter_async_context(
            connected(self._r, name=f"{self._name}-{self._count}", settings=QUICK)
        )
        for name in list(self.copies):
            self.open(name, view="merged")

    async def lose(self) -> None:
        self.client.wire.cut()
        await self.connect()

    def open(self, name: str, *, anew: bool = False, **members: Any) -> None:
        copy = self.copies[name]
        if anew:
            self.copies[name] = copy = Copy()
        self._count += 1
        copy.awaited = f"o{self._count}"
        if copy.epoch is not None:
            members |= {"after": copy.last, "epoch": copy.epoch}
        self.client.say("open", id=copy.awaited, conversation=name, **members)

    def close(self, name: str) -> None:
        """What still comes is ignored, until it is opened again."""
        self.client.say("close", id="close", conversation=name)
        self.copies[name].awaited = "nothing"

    def read(self) -> None:
        """Takes what has arrived."""
        frames = self.client.wire.frames
        while frames:
            frame = msgspec.json.decode(frames.popleft())
            name = frame.get("conversation")
            if frame["type"] == "reply":
                opened = [c for c in self.copies.values() if c.awaited == frame["re"]]
                for copy in opened:
                    copy.open(frame)
            elif frame["type"] == "caught_up":
                self.copies[name].caught_up(frame)
            elif frame["type"] not in ("ping", "welcome"):
                self.copies[name].event(frame)
                self.client.say("ack", conversation=name, seq=self.copies[name].last)


async def story(steps: list[tuple[Any, ...]]) -> None:
    """Plays the steps, then lets everything come to rest."""
    told = dict.fromkeys(NAMES, "")
    async with (
        rig(ScriptedProvider(says("x")), store=Disk()) as r,
        AsyncExitStack() as stack,
    ):
        readers = [Reader(r, stack, f"r{n}") for n in range(2)]
        for reader in readers:
            await reader.connect()
        for name in NAMES:
            await r.directory.create(LOCAL.key(name), None, LOCAL)
        for step in steps:
            await _play(r, readers, told, step)
        for reader in readers:
            reader.client.wire.flow()
            for name in NAMES:
                reader.open(name)
        with anyio.fail_after(30):
            while not all(_is_done(reader, told) for reader in readers):
                await anyio.sleep(0.001)
                for reader in readers:
                    reader.client.wire.flow()
                    reader.read()
        for reader in readers:
            for name in NAMES:
                assert reader.copies[name].text == told[name]
            reader.client.wire.cut()


async def _play(
    r: Rig, readers: list[Reader], told: dict[str, str], step: tuple[Any, ...]
) -> None:
    match step:
        case ("say", name, kind, text):
            found = await r.directory.find(LOCAL.key(name))
            assert found is not None
            found.log.append_text(kind, 1, text)
            told[name] += text if kind == "delta" else ""
        case ("open", n, name, members):
            readers[n].read()
            readers[n].open(name, **members)
        case ("close", n, name):
            readers[n].close(name)
        case ("wire", n, method, *args):
            getattr(readers[n].client.wire, method)(*args)
        case ("lose", n):
            await readers[n].lose()
        case ("wait", steps):
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
        case _:
            raise AssertionError(step)
    for reader in readers:
        reader.read()


def _is_done(reader: Reader, told: dict[str, str]) -> bool:
    return all(
        len(reader.copies[name].text) >= len(told[name])
        and reader.copies[name].awaited is None
        and reader.copies[name].catch_up_at is None
        for name in NAMES
    )


TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.builds(
    lambda text, times: text * times, st.text(max_size=5), st.integers(1, 3000)
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "view": st.sampled_from(["merged", "frames"]),
        "window_bytes": st.sampled_from([1024, 5000, 100_000]),
        "anew": st.booleans(),
    },
)
NAME, READER = st.sampled_from(NAMES), st.integers(0, 1)
STEP = st.one_of(
    st.tuples(
        st.just("say"), NAME, st.sampled_from(["delta", "delta", "reasoning"]), TEXT
    ),
    st.tuples(st.just("open"), READER, NAME, OPTIONS),
    st.tuples(st.just("close"), READER, NAME),
    st.tuples(st.just("wire"), READER, st.sampled_from(["stall", "flow"])),
    st.tuples(st.just("wire"), READER, st.just("drain"), st.integers(1, 100_000)),
    st.tuples(st.just("lose"), READER),
    st.tuples(st.just("wait"), st.integers(1, 20)),
)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(steps=st.lists(STEP, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_each_number_once_in_order_and_the_text_exact(
    backend: str, steps: list[tuple[Any, ...]]
) -> None:
    play(backend, story, steps)
