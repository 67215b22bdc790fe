"""A thousand interrupts under a thousand live streams."""

import asyncio
import time

from tests.bench.clients.chats import in_waves
from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.upstream import closed_us
from tests.bench.clients.wsserver import Socket, connect_socket
from tests.bench.scenario import Column, Figures, Rig, Scenario, percentile
from tests.bench.streams import start

STREAMS = 1000
INTERRUPTS_PER_SECOND = 100
CLOSE_SECONDS = 5.0


class _Stream:
    """A conversation whose turn is interrupted once, and then asked again."""

    def __init__(self, rig: Rig, number: int, rate: float) -> None:
        self.name = f"{rig.run}-{number}"
        self.model = f"bench:tokens=1000000,rate={rate:g},id={self.name}"
        self.socket: Socket | None = None
        self.asked_us = 0
        self.reply_ms = 0.0
        self._port = rig.relay.port

    async def open(self, tally: Tally) -> None:
        self.socket = await connect_socket(self._port)
        config = {"model": self.model}
        await self.socket.open(self.name, Answer(tally), config=config)

    def ask(self) -> None:
        assert self.socket is not None
        self.socket.send(self.name)

    async def interrupt(self, at: float) -> None:
        assert self.socket is not None
        await asyncio.sleep(at - time.monotonic())
        self.asked_us = time.monotonic_ns() // 1000
        await self.socket.command("interrupt", conversation=self.name)
        self.reply_ms = (time.monotonic_ns() // 1000 - self.asked_us) / 1000
        self.ask()


async def _interrupts(rig: Rig, rate: float) -> Figures:
    streams = [_Stream(rig, number, rate) for number in range(STREAMS)]
    tally = Tally(STREAMS)
    await in_waves(STREAMS, lambda number: streams[number].open(tally))
    try:
        return await _interrupted(rig, streams, tally)
    finally:
        for stream in streams:
            if stream.socket is not None:
                stream.socket.close()


async def _interrupted(rig: Rig, streams: list[_Stream], tally: Tally) -> Figures:
    await start(streams, tally)
    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number, stream in enumerate(streams):
            at = begin + number / INTERRUPTS_PER_SECOND
            tasks.create_task(stream.interrupt(at))
    closed = await closed_us(rig.upstream.port)
    for _ in range(int(CLOSE_SECONDS * 10)):
        if len(closed) == STREAMS:
            break
        await asyncio.sleep(0.1)
        closed = await closed_us(rig.upstream.port)
    seen = [
        (closed[stream.name] - stream.asked_us) / 1000
        for stream in streams
        if stream.name in closed
    ]
    replies = [stream.reply_ms for stream in streams]
    return {
        "reply_p50": percentile(replies, 0.5),
        "reply_p99": percentile(replies, 0.99),
        "closed_p50": percentile(seen, 0.5),
        "closed_p99": percentile(seen, 0.99),
        "closed": float(len(seen)),
    }


def _scenario(rate: float) -> Scenario:
    async def run(rig: Rig) -> Figures:
        return await _interrupts(rig, rate)

    return Scenario(
        name=f"interrupts-{rate:g}",
        title=f"1,000 interrupts under 1,000 streams x {rate:g} tokens a second",
        note=f"{INTERRUPTS_PER_SECOND} a second; whoever was interrupted asks again at"
        " once. `closed` is when the mock upstream saw its connection closed.",
        columns=(
            Column(key="reply_p50", heading="reply p50 ms", digits=2),
            Column(key="reply_p99", heading="reply p99 ms", digits=1),
            Column(key="closed_p50", heading="closed p50 ms", digits=2),
            Column(key="closed_p99", heading="closed p99 ms", digits=1),
            Column(key="closed", heading="closed"),
        ),
        applies=lambda row: row.ours,
        run=run,
        rounds=2,
        fresh=True,
    )


SCENARIOS = (_scenario(10), _scenario(30))
