"""One noisy conversation beside fifty others on a socket."""

import asyncio
import time
from typing import Any

from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.wsserver import Socket, connect_socket
from tests.bench.scenario import Column, Figures, Rig, Scenario, percentile

OTHERS = 50
TURNS = 4
NOISE_TEXT_BYTES = 4000
NOISE_RATE = 250
ASK_SECONDS = 1.2
WAIT_SECONDS = 20.0


class _First(Answer):
    """Notes when the first token of a turn comes."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.came = asyncio.Event()
        self.at = 0.0

    def feed(self, text: bytes) -> None:
        if not self.came.is_set():
            self.at = time.monotonic()
            self.came.set()


class _Waits:
    """What the others wait for, in milliseconds."""

    def __init__(self) -> None:
        self.first: list[float] = []
        self.reply: list[float] = []


async def _other(socket: Socket, name: str, waits: _Waits, delay: float) -> None:
    """Asks, reads for a while, interrupts; again and again."""
    await asyncio.sleep(delay)
    for _ in range(TURNS):
        answer = _First(Tally(1))
        socket.attach(name, answer)
        begin = time.monotonic()
        socket.send(name)
        await asyncio.wait_for(answer.came.wait(), WAIT_SECONDS)
        waits.first.append((answer.at - begin) * 1000)
        await asyncio.sleep(ASK_SECONDS / 2)
        begin = time.monotonic()
        await socket.command("interrupt", conversation=name)
        waits.reply.append((time.monotonic() - begin) * 1000)
        await asyncio.sleep(ASK_SECONDS / 2)


async def _others(socket: Socket, prefix: str) -> _Waits:
    waits = _Waits()
    config = {"model": "bench:tokens=10000,rate=30"}
    names = [f"{prefix}-{number}" for number in range(OTHERS)]
    for name in names:
        await socket.open(name, config=config)
    async with asyncio.TaskGroup() as tasks:
        for number, name in enumerate(names):
            delay = ASK_SECONDS * number / OTHERS
            tasks.create_task(_other(socket, name, waits, delay))
    return waits


async def _noisy(rig: Rig) -> Figures:
    quiet_socket = await connect_socket(rig.relay.port)
    quiet = await _others(quiet_socket, f"{rig.run}-quiet")
    quiet_socket.close()

    socket = await connect_socket(rig.relay.port)
    noise = f"{rig.run}-noise"
    # Shorter than the text that a turn may have, so it is asked for again and again.
    noise_model = f"bench:tokens=900,rate={NOISE_RATE},text={NOISE_TEXT_BYTES}"
    tally = Tally(1)
    await socket.open(noise, Answer(tally), config={"model": noise_model})

    def on_event(frame: dict[str, Any]) -> None:
        if frame["type"] == "done" and frame["conversation"] == noise:
            socket.send(noise)

    socket.on_event = on_event
    socket.send(noise)
    await asyncio.wait_for(tally.all_started.wait(), WAIT_SECONDS)
    begin, received = time.monotonic(), socket.counter.bytes
    waits = await _others(socket, f"{rig.run}-loud")
    seconds = time.monotonic() - begin
    received = socket.counter.bytes - received
    socket.close()
    return {
        "first_quiet": percentile(quiet.first, 0.99),
        "first": percentile(waits.first, 0.99),
        "reply_quiet": percentile(quiet.reply, 0.99),
        "reply": percentile(waits.reply, 0.99),
        "noise": received / seconds / 1e6,
    }


SCENARIOS = (
    Scenario(
        name="noisy",
        title=f"A conversation of 1 MB/s on a socket with {OTHERS} others",
        note=f"The others ask and interrupt {TURNS} times each; `quiet` is the same"
        " without the noisy one. The upstream's first token comes at once.",
        columns=(
            Column(key="first_quiet", heading="first token p99 ms, quiet", digits=1),
            Column(key="first", heading="noisy", digits=1),
            Column(
                key="reply_quiet", heading="interrupt reply p99 ms, quiet", digits=1
            ),
            Column(key="reply", heading="noisy", digits=1),
            Column(key="noise", heading="MB/s on the socket", digits=2),
        ),
        applies=lambda row: row.ours,
        run=_noisy,
        rounds=1,
    ),
)
