"""One conversation that says more than the client takes, beside fifty others.

In virtual time: the client takes 1 MB a second and the noisy conversation says 2.
"""

import statistics
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from protocol.merge import MAX_MERGED_BYTES
from tests.connections.wire import SETTINGS, Client, connected
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from tests.fakes.rig import rig
from wsserver.connections.writer import QUANTUM_BYTES
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import ModelEvent, ModelRequest, Text
from wsserver.providers.batches import Batches
from wsserver.turns.services import ConversationLimits

OTHERS = 50
TICK = 0.001
TAKES_PER_TICK = 1_000
NOISE = Text("x" * 4_000)
NOISE_EVERY = 0.002
BUFFERED_SECONDS = (
    TICK
    / TAKES_PER_TICK
    * (SETTINGS.high_water_bytes + MAX_MERGED_BYTES + QUANTUM_BYTES)
)
"""How long what may stand before a control frame takes to the client."""


class Voices:
    """The provider: the model `noise` never stops, others say a word and wait."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        yield Batches(self._play(request.model))

    async def _play(self, model: str) -> AsyncIterator[Sequence[ModelEvent]]:
        while model == "noise":
            yield [NOISE]
            await anyio.sleep(NOISE_EVERY)
        yield [Text("word")]
        await anyio.sleep_forever()


class Reader:
    """The client's end: takes what fits into the time, and notes when what came."""

    def __init__(self, client: Client) -> None:
        self.at: dict[tuple[str, str], float] = {}
        self.noise_bytes = 0
        self._client = client
        self._came: dict[tuple[str, str], anyio.Event] = defaultdict(anyio.Event)

    async def run(self) -> None:
        wire, credit = self._client.wire, 0
        wire.stall()
        while True:
            await anyio.sleep(TICK)
            credit += TAKES_PER_TICK
            before = wire.buffered_bytes()
            wire.drain(credit)
            credit -= before - wire.buffered_bytes()
            if not wire.buffered_bytes():
                credit = 0
            while wire.frames:
                self._take(wire.frames.popleft())

    def _take(self, frame: bytes) -> None:
        event = msgspec.json.decode(frame)
        key = (event["type"], event.get("re") or event.get("conversation", ""))
        if key == ("delta", "noise"):
            self.noise_bytes += len(frame)
        self.at.setdefault(key, anyio.current_time())
        self._came[key].set()

    async def until(self, type_: str, of: str) -> float:
        """Waits for a frame; returns when it came."""
        with anyio.fail_after(100):
            await self._came[type_, of].wait()
        return self.at[type_, of]

    async def ask(self, type_: str, id_: str, **members: Any) -> float:
        """Says a command; returns how long its reply took."""
        begin = anyio.current_time()
        self._client.say(type_, id=id_, **members)
        return await self.until("reply", id_) - begin


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100, method="inclusive")[98]


async def test_neither_first_tokens_nor_interrupts_wait_for_a_noisy_neighbour(
    record_property: Callable[[str, object], None],
) -> None:
    first: list[float] = []
    replies: list[float] = []
    limits = ConversationLimits(
        active_turns=OTHERS + 1, turn=TurnLimits(turn_bytes=2**30)
    )

    async def other(reader: Reader, number: int) -> None:
        name = f"c{number}"
        await anyio.sleep(number * 0.03)
        begin = anyio.current_time()
        await reader.ask("send", f"s{number}", conversation=name, content="hi")
        first.append(await reader.until("delta", name) - begin)
        await anyio.sleep(0.3)
        replies.append(await reader.ask("interrupt", f"i{number}", conversation=name))

    async with (
        rig(Voices(), limits=limits) as r,
        connected(r) as client,
        anyio.create_task_group() as reading,
    ):
        reader = Reader(client)
        reading.start_soon(reader.run)
        for name in ["noise", *(f"c{number}" for number in range(OTHERS))]:
            config = {"model": name}
            await reader.ask("open", f"o-{name}", conversation=name, config=config)
        await reader.ask("send", "s-noise", conversation="noise", content="go")
        await anyio.sleep(1.0)  # by now there is more of it than the buffers hold
        async with anyio.create_task_group() as others:
            for number in range(OTHERS):
                others.start_soon(other, reader, number)
        reading.cancel_scope.cancel()
    record_property("first_token_p99_ms", 1000 * p99(first))
    record_property("interrupt_reply_p99_ms", 1000 * p99(replies))
    assert len(first) == len(replies) == OTHERS
    assert reader.noise_bytes > 1_000_000, "it was noisy"
    assert p99(replies) <= BUFFERED_SECONDS
    assert p99(first) <= 2 * BUFFERED_SECONDS
