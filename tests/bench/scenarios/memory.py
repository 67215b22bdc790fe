"""What an idle connection and a running stream take of memory."""

import asyncio

from tests.bench.clients.chats import Chat, in_waves, open_chat
from tests.bench.clients.tally import Answer, Tally
from tests.bench.scenario import Column, FellBehind, Figures, Rig, Scenario
from tests.bench.streams import START_SECONDS, warm_up

FIRST = 100
CHATS = 900
ROWS = ("floor", "node-ws", "plain-sdk")
SETTLE_SECONDS = 1.0
ASKS_PER_SECOND = 250  # what a storm of starts holds for a moment is no stream's own
MODEL = "bench:tokens=10000,rate=1"


async def _memory(rig: Rig) -> Figures:
    await warm_up(rig)
    tally = Tally(FIRST + CHATS)

    async def chat(number: int) -> Chat:
        name = f"{rig.run}-memory-{number}"
        dialect, port = rig.row.dialect, rig.relay.port
        return await open_chat(dialect, port, name, MODEL, Answer(tally))

    # What the first ones take is the process's own: arenas, caches, imports.
    chats = await in_waves(FIRST, chat)
    for each in chats:
        each.ask()
    await _until(tally, FIRST)
    before = rig.relay.rss_bytes()
    chats += await in_waves(CHATS, lambda number: chat(FIRST + number))
    await asyncio.sleep(SETTLE_SECONDS)
    idle = rig.relay.rss_bytes()
    for each in chats[FIRST:]:
        each.ask()
        await asyncio.sleep(1 / ASKS_PER_SECOND)
    await _until(tally, FIRST + CHATS)
    running = rig.relay.rss_bytes()
    for each in chats:
        each.close()
    return {
        "idle": (idle - before) / CHATS / 1024,
        "stream": (running - idle) / CHATS / 1024,
        "mib": before / 2**20,
    }


async def _until(tally: Tally, started: int) -> None:
    for _ in range(int(START_SECONDS * 20)):
        if tally.started >= started:
            await asyncio.sleep(SETTLE_SECONDS)
            return
        await asyncio.sleep(0.05)
    raise FellBehind(f"{tally.started} of {started} streams began in time")


SCENARIOS = (
    Scenario(
        name="memory",
        title=f"Memory of {CHATS} connections",
        note="Growth of the resident set; `idle`: connected, with one open conversation"
        " where there are conversations; `stream`: what a running answer adds, its"
        " upstream connection included; `MiB` before them, with 100 streams. The SDK's"
        " pool has 1,000 connections, so there are no more streams than that.",
        columns=(
            Column(key="idle", heading="KiB idle", digits=1),
            Column(key="stream", heading="KiB stream", digits=1),
            Column(key="mib", heading="MiB"),
        ),
        applies=lambda row: row.name in ROWS or row.ours,
        run=_memory,
        rounds=1,
        fresh=True,
    ),
)
