"""A client that missed five thousand tokens."""

import asyncio
import statistics
import time
from typing import Any

from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.wsserver import Socket, connect_socket
from tests.bench.scenario import Column, Figures, Rig, Scenario

TOKENS = 5000
TIMES = 15
ANSWER_SECONDS = 30.0
_CURSOR = "bench:tokens=5000,rate=0"


class _Resumed:
    """What one resume brought."""

    def __init__(self, frames: int, bytes_: int, ms: float) -> None:
        self.frames = frames
        self.bytes = bytes_
        self.ms = ms


async def _answered(socket: Socket, name: str) -> tuple[str, int]:
    """Lets the answer be written; returns the epoch, and `start`'s number."""
    started: list[int] = []

    def on_event(frame: dict[str, Any]) -> None:
        if frame["type"] == "start":
            started.append(frame["seq"])

    socket.on_event = on_event
    tally = Tally(1)
    reply = await socket.open(name, Answer(tally), config={"model": _CURSOR})
    socket.send(name)
    await asyncio.wait_for(tally.all_ended.wait(), ANSWER_SECONDS)
    assert tally.tokens == TOKENS, f"{tally.tokens} tokens came"
    return reply["epoch"], started[0]


async def _resumed(rig: Rig, epoch: str, after: int) -> _Resumed:
    socket = await connect_socket(rig.relay.port)
    tally = Tally(1)
    events: list[dict[str, Any]] = []
    socket.on_event = events.append
    begin = time.monotonic()
    await socket.open(rig.run, Answer(tally), epoch=epoch, after=after)
    ms = (time.monotonic() - begin) * 1000
    socket.close()
    assert tally.tokens == TOKENS, f"{tally.tokens} tokens came"
    numbered = sum("seq" in event and "turn" in event for event in events)
    return _Resumed(tally.frames + numbered, socket.counter.bytes, ms)


async def _resume(rig: Rig) -> Figures:
    socket = await connect_socket(rig.relay.port)
    epoch, after = await _answered(socket, rig.run)
    socket.close()
    resumed = [await _resumed(rig, epoch, after) for _ in range(TIMES)]
    return {
        "frames": statistics.median(each.frames for each in resumed),
        "kib": statistics.median(each.bytes for each in resumed) / 1024,
        "ms": statistics.median(each.ms for each in resumed),
        "worst_ms": max(each.ms for each in resumed),
    }


SCENARIOS = (
    Scenario(
        name="resume",
        title="Resume of 5,000 tokens",
        note=f"From `open` to `caught_up`, {TIMES} times; frames are the numbered ones,"
        " bytes are all of the connection. The text has 29 KiB.",
        columns=(
            Column(key="frames", heading="frames"),
            Column(key="kib", heading="KiB", digits=1),
            Column(key="ms", heading="ms, median", digits=2),
            Column(key="worst_ms", heading="ms, worst", digits=1),
        ),
        applies=lambda row: row.ours,
        run=_resume,
    ),
)
