"""A page gets the recording in batches, and what it orders is done."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson

from tests.connections.wire import Wire
from tests.inspector.recording import recorder
from wsserver.connections.transport import Handshake
from wsserver.inspector.feed import BATCH_BYTES, Feed
from wsserver.inspector.inspector import Inspector
from wsserver.inspector.records import Outbound

RING_BYTES = 500_000
FRAME = b'{"type":"delta","conversation":"c","seq":3,"turn":2,"text":"Hello"}'


class Page:
    """One page of the inspector."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(1000):
            while not self.wire.frames:
                await self.wire.changed()
        return orjson.loads(self.wire.frames.popleft())

    async def lines(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += (await self.next())["lines"]
        return found

    def order(self, act: str, **members: Any) -> None:
        self.wire.say(orjson.dumps({"act": act, "connection": "c1", **members}))


@asynccontextmanager
async def inspected() -> AsyncGenerator[tuple[Inspector, Wire, Page]]:
    """An inspector with one connection, and a page that has just come."""
    written = recorder(ring_bytes=RING_BYTES, now=anyio.current_time)
    inspector = Inspector(written)
    client, page = Wire(), Page(Wire())
    feed = Feed(inspector, RING_BYTES)
    async with inspector.tapped("c1", client), anyio.create_task_group() as tasks:
        tasks.start_soon(feed.serve, page.wire, Handshake(peer="here"))
        yield inspector, client, page
        page.wire.cut(1001)


async def test_a_page_is_told_what_there_is() -> None:
    async with inspected() as (inspector, _, page):
        first = await page.next()
        assert first["type"] == "recording"
        assert first["header"] == orjson.loads(
            orjson.dumps(
                {
                    "recording": 1,
                    "server": {"name": "wsserver", "version": "0"},
                    "started_at": inspector.recorder.header.started_at,
                    "content": "redacted",
                }
            )
        )
        assert first["connections"] == [{"connection": "c1", "in_ms": 0, "out_ms": 0}]
        assert first["ring_bytes"] == RING_BYTES
        batch = await page.next()
        assert batch["missed"] == 0
        assert [line["kind"] for line in batch["lines"]] == ["opened"]


async def test_lines_come_in_batches() -> None:
    async with inspected() as (inspector, _, page):
        await page.next()
        await page.next()
        for _ in range(50):
            for _ in range(4):
                inspector.recorder.frame(Outbound, "c1", FRAME)
            await anyio.sleep(0.01)
        before = page.wire.batches
        assert len(await page.lines(200)) == 200
        assert before < 10, "half a second, ten times a second"


async def test_a_slow_page_misses_lines_and_takes_no_memory() -> None:
    async with inspected() as (inspector, _, page):
        await page.next()
        page.wire.stall()
        for _ in range(40):
            for _ in range(500):
                inspector.recorder.frame(Outbound, "c1", FRAME)
            await anyio.sleep(0.2)
        assert page.wire.most_buffered < BATCH_BYTES + 10_000
        page.wire.flow()
        missed, numbers = 0, [1]
        while numbers[-1] < inspector.recorder.ring.head:
            batch = await page.next()
            missed += batch["missed"]
            numbers += [line["n"] for line in batch["lines"]]
        assert missed > 1000
        assert missed + len(set(numbers)) == inspector.recorder.ring.head


async def test_orders_are_done_and_recorded() -> None:
    async with inspected() as (inspector, client, page):
        await page.next()
        page.order("delay", in_ms=30, out_ms=40)
        for act in ("duplicate", "repeat", "lose"):
            page.order(act)
        page.order("drop")
        lines = await page.lines(7)
        acts = [line for line in lines if line["kind"] == "act"]
        assert [line["act"] for line in acts] == [
            "delay", "duplicate", "repeat", "lose", "drop"
        ]  # fmt: skip
        assert (acts[0]["in_ms"], acts[0]["out_ms"]) == (30, 40)
        assert client.aborted
        assert lines[-1]["kind"] == "closed"
        assert lines[-1]["by"] == "inspector"
        (watched,) = inspector.watched()
        assert (watched.in_ms, watched.out_ms) == (30, 40)


async def test_an_order_that_makes_no_sense_is_refused() -> None:
    async with inspected() as (_, client, page):
        await page.next()
        await page.next()
        for data in (b"\xff", b"drop", b'{"act":"explode","connection":"c1"}'):
            page.wire.say(data)
            assert (await page.next())["type"] == "refused"
        page.order("delay", in_ms=-1, out_ms=0)
        assert "in_ms" in (await page.next())["about"]
        page.wire.say(b'{"act":"drop","connection":"gone"}')
        page.order("drop")
        lines = await page.lines(2)
        assert [line["connection"] for line in lines] == ["c1", "c1"]
        assert client.aborted
