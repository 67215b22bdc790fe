"""However long a run is, what it keeps does not grow."""

import gc
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import anyio
import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_demo.load import peer as peer_module
from client_demo.load.peer import Peer
from client_demo.load.recording import Recording
from client_demo.load.series import Series
from client_demo.load.sketch import nearest, quantile, together
from client_demo.load.talk import Talk
from client_demo.load.tally import Counts, Tally
from protocol.commands import Interrupt, Open
from tests.client_demo.load.log import Heard

MS = st.floats(min_value=0.001, max_value=7.2e6)


@given(ms=MS)
def test_a_time_is_counted_within_half_a_percent(ms: float) -> None:
    assert nearest(ms) == pytest.approx(ms, rel=0.00501)
    assert nearest(nearest(ms)) == nearest(ms)
    assert nearest(0) == nearest(0.0005) == pytest.approx(0.001, rel=0.005)


@given(times=st.lists(MS, min_size=1, max_size=50), part=st.floats(0.01, 1))
def test_quantiles_are_those_of_the_times(times: list[float], part: float) -> None:
    counts: dict[float, int] = {}
    for ms in times:
        counts = together(counts, {nearest(ms): 1})
    exact = sorted(times)[max(0, -int(-part * len(times) // 1) - 1)]
    assert quantile(counts, part) == pytest.approx(exact, rel=0.00501)


def test_first_tokens_keep_their_percentiles_in_a_few_kilobytes() -> None:
    now = 0.0
    tally = Tally(lambda: now)
    random = Random(5)
    exact: list[float] = []
    sizes: list[int] = []
    for turn in range(60_000):
        now = turn % 10
        seconds = random.lognormvariate(-1, 0.8)
        exact.append(seconds * 1000)
        tally.first_token(seconds)
        if turn in {29_999, 59_999}:
            sizes.append(len(msgspec.json.encode(tally.series)))
    assert sizes[1] < 1.3 * sizes[0] < 60_000
    whole: dict[float, int] = {}
    for bucket in tally.series.buckets:
        whole = together(whole, bucket.ttft_ms)
    exact.sort()
    for part in (0.5, 0.9, 0.99, 0.999):
        expected = exact[round(part * len(exact)) - 1]
        assert quantile(whole, part) == pytest.approx(expected, rel=0.01)


def test_what_is_counted_travels_between_processes() -> None:
    tally = Tally(lambda: 3.0)
    tally.first_token(0.25)
    there = msgspec.json.decode(msgspec.json.encode(tally.counts()), type=Counts)
    assert there.series == tally.series
    assert Series(buckets=[]).buckets == []


class Echo:
    """A connection whose server says yes to everything, at once."""

    welcome = SimpleNamespace(connection="w")
    code = None

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.replies: deque[bytes] = deque()
        self.news = anyio.Event()

    async def send(self, data: bytes) -> None:
        frame = orjson.loads(data)
        name = frame["conversation"]
        kinds = {"interrupt": {"outcome": "not_found"}}
        opened = {"outcome": "created", "epoch": "e", "head": 0, "oldest": 1}
        said = kinds.get(frame["type"], opened)
        self.say(type="reply", re=frame["id"], ok=True, conversation=name, **said)
        if frame["type"] == "open":
            self.say(type="caught_up", conversation=name, seq=0)

    def say(self, **frame: Any) -> None:
        self.replies.append(orjson.dumps(frame))
        self.news.set()

    async def receive(self) -> bytes:
        while not self.replies:
            self.news = anyio.Event()
            await self.news.wait()
        return self.replies.popleft()


Play = Callable[[Talk, Echo, Heard], Awaitable[None]]


async def talk(play: Play, monkeypatch: pytest.MonkeyPatch) -> Heard:
    heard, echo = Heard(), Echo()

    async def dial(*_: object, **__: object) -> Echo:
        return echo

    monkeypatch.setattr(peer_module, "dial", dial)
    with anyio.fail_after(15):
        async with anyio.create_task_group() as tasks:
            peer = Peer(
                None, Tally(lambda: 0.0), tasks, random=Random(1), slow=False,  # pyright: ignore[reportArgumentType]
                measured=False, found=heard.found,
            )  # fmt: skip
            await peer.connect()
            made = Talk(
                "c", peer, open_frame=Open(id="c", conversation="c"), found=heard.found,
                recording=Recording(), on_tool=lambda _: None,
            )  # fmt: skip
            peer.talks["c"] = made
            await made.attach()
            await play(made, echo, heard)
            tasks.cancel_scope.cancel()
    return heard


async def test_commands_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(talk: Talk, echo: Echo, heard: Heard) -> None:
        sizes: list[int] = []
        tracemalloc.start()
        try:
            for number in range(1, 1201):
                await talk.command(Interrupt(id=talk.new_id(), conversation="c"))
                if number % 400 == 0:
                    gc.collect()
                    sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert sizes[2] - sizes[1] < 8_000, sizes
        assert not heard.kinds

    await talk(play, monkeypatch)


async def test_replies_that_nobody_waits_for_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(talk: Talk, echo: Echo, heard: Heard) -> None:
        interrupt = Interrupt(id=talk.new_id(), conversation="c")
        await talk.command(interrupt)
        reply = {"type": "reply", "ok": True, "outcome": "not_found"}
        echo.say(**reply, re=interrupt.id)
        echo.say(**reply, re="c.77")
        echo.say(**reply, re="d.1")
        await talk.command(Interrupt(id=talk.new_id(), conversation="c"))
        assert heard.kinds == ["reply_twice", "foreign_reply", "foreign_reply"]

    await talk(play, monkeypatch)
