"""Looks for growth: `python -m tests.bench --soak MINUTES`.

Twenty clients chat all the time. Each connects, opens a new conversation, takes a few
answers, interrupts every third one, comes back to it on a second connection, deletes
it, and goes; so nothing that they did should be left. The resident set is sampled, and
a line is laid through the second half of the samples.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.wsserver import Socket, connect_socket
from tests.bench.process import Process
from tests.bench.rows import Row, mock_upstream, started
from tests.bench.runner import say

CLIENTS = 20
TURNS = 3
TOKENS = 60
CONFIG = {"model": f"bench:tokens={TOKENS},rate=60"}
TURN_SECONDS = 30.0
SAMPLES = 240


class _Clients:
    """Everybody who chats.

    Attributes:
        turns: How many have ended.
    """

    def __init__(self, port: int) -> None:
        self.turns = 0
        self._port = port
        self._names = (f"soak-{number}" for number in itertools.count())

    async def chat(self, until: float) -> None:
        while time.monotonic() < until:
            name = next(self._names)
            socket = await connect_socket(self._port)
            reply = await socket.open(name, config=CONFIG)
            for number in range(TURNS):
                await self._turn(socket, name, interrupted=number % 3 == 2)
            socket.close()
            socket = await connect_socket(self._port)
            await socket.open(name, epoch=reply["epoch"], after=2)
            await socket.command("delete", conversation=name)
            socket.close()

    async def _turn(self, socket: Socket, name: str, *, interrupted: bool) -> None:
        tally = Tally(1)
        socket.attach(name, Answer(tally))
        socket.send(name)
        if interrupted:
            await asyncio.wait_for(tally.all_started.wait(), TURN_SECONDS)
            await socket.command("interrupt", conversation=name)
        await asyncio.wait_for(tally.all_ended.wait(), TURN_SECONDS)
        self.turns += 1


async def soak(rows: Sequence[Row], minutes: float) -> None:
    """Soaks each row for so long, and prints its growth."""
    for row in rows:
        async with AsyncExitStack() as stack:
            upstream = await stack.enter_async_context(mock_upstream())
            relay = await stack.enter_async_context(started(row, upstream))
            await _soak(row, relay, minutes)


async def _soak(row: Row, relay: Process, minutes: float) -> None:
    clients = _Clients(relay.port)
    begin = time.monotonic()
    until = begin + minutes * 60
    samples: list[tuple[float, float]] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(clients.chat(until))
        while time.monotonic() < until:
            await asyncio.sleep(minutes * 60 / SAMPLES)
            at = (time.monotonic() - begin) / 60
            samples.append((at, relay.rss_bytes() / 1024))
            if len(samples) % (SAMPLES // 12) == 0:
                kib = samples[-1][1]
                say(f"{row.name}: {at:.1f} min, {clients.turns} turns, {kib:,.0f} KiB")
    late = samples[len(samples) // 2 :]
    slope = statistics.linear_regression(*zip(*late, strict=True)).slope
    turns_a_minute = clients.turns / minutes
    say(
        f"{row.name}: {slope:+.1f} KiB a minute over the last {minutes / 2:g} minutes,"
        f" {slope * 1024 / turns_a_minute:+.0f} bytes a turn,"
        f" {turns_a_minute:,.0f} turns a minute"
    )
