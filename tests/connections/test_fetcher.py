"""History that the store does not give: asked for again, ever less often."""

from itertools import pairwise

import anyio
import pytest
from structlog.testing import capture_logs

from tests.connections.journal import Disk, Journal, desk, settle, text
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.connections.fetcher import (
    RETRIES_APART_SECONDS,
    RETRY_FIRST_SECONDS,
    RETRY_MOST_SECONDS,
)
from wsserver.connections.viewer import BLOCK_BYTES
from wsserver.log.entry import Entry
from wsserver.log.store import StoreError


class Asked(Disk):
    """Notes when it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []
        self.sizes: list[int] = []

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        self.times.append(anyio.current_time())
        self.sizes.append(max_bytes)
        return await super().read(key, after, max_bytes)


async def test_a_store_that_fails_is_asked_ever_less_often_and_told_of_once() -> None:
    disk = Asked()
    journal = await (await Journal(disk).told("a", "b")).forgotten()
    disk.faults = 9
    with capture_logs() as lines:
        async with desk() as d:
            d.view(journal)
            with anyio.fail_after(100):
                while not d.wire.frames:
                    await d.wire.changed()
            assert text(d.got()) == "ab"
    waits = [later - earlier for earlier, later in pairwise(disk.times)]
    wanted = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert waits == pytest.approx(wanted, rel=0.01)
    assert lines == [
        {"event": "history_unavailable", "log_level": "warning", "error": "no"}
    ]


async def test_each_outage_begins_anew() -> None:
    disk = Asked()
    with capture_logs() as lines:
        for name in ("c", "d"):
            old = await (await Journal(disk, name).told("a")).forgotten()
            disk.faults = 3
            disk.times.clear()
            async with desk() as d:
                d.view(old)
                with anyio.fail_after(100):
                    while not d.wire.frames:
                        await d.wire.changed()
            assert disk.times[-1] - disk.times[0] == pytest.approx(0.7, rel=0.01)
    assert [line["event"] for line in lines] == ["history_unavailable"] * 2


class Damaged(Disk):
    """Can't read one conversation."""

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        if key.endswith("damaged"):
            raise StoreError("no")
        return await super().read(key, after, max_bytes)


async def test_what_the_store_can_not_give_holds_up_no_other() -> None:
    disk = Damaged()
    bad = await (await Journal(disk, "damaged").told("a")).forgotten()
    good = await (await Journal(disk, "good").told("b", "c")).forgotten()
    late = await (await Journal(disk, "late").told("d")).forgotten()
    async with desk() as d:
        damaged = d.view(bad)
        d.view(good)
        await settle()
        assert text(d.got(), "good") == "bc"
        with anyio.fail_after(100):
            await anyio.sleep(60)  # the next try is seconds away
            d.view(late)
            await settle()
            assert text(d.got(), "late") == "d"
        damaged.close()


class Slow(Disk):
    """Takes its time, and fails once for one conversation."""

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        if key.endswith("failed") and key not in self.reads:
            self.reads.append(key)
            raise StoreError("no")
        await anyio.sleep(RETRY_FIRST_SECONDS)
        return await super().read(key, after, max_bytes)


async def test_what_failed_once_does_not_wait_for_all_that_others_want() -> None:
    disk = Slow()
    failed = await (await Journal(disk, "failed").told("a")).forgotten()
    texts = ["x" * (BLOCK_BYTES // 2)] * 20
    others = [
        await (await Journal(disk, name).told(*texts)).forgotten() for name in "abc"
    ]
    async with desk() as d:
        for journal in (failed, *others):
            d.view(journal)
        with anyio.fail_after(100):
            while not text(d.got(), "failed"):
                await d.wire.changed()
    assert disk.reads[:4] == ["s/failed", "s/a", "s/b", "s/c"]
    assert len(disk.reads) < 10


async def test_a_store_that_is_gone_is_not_asked_by_all_views_at_once() -> None:
    views = 300
    disk = Asked()
    disk.faults = 100_000
    async with desk() as d:
        for number in range(views):
            d.view(await (await Journal(disk, f"n{number}").told("a")).forgotten())
        with anyio.fail_after(1_000):
            await anyio.sleep(60)
            again = disk.times[views:]
            closest = min(later - earlier for earlier, later in pairwise(again))
            assert closest >= RETRIES_APART_SECONDS * 0.99
            assert len(again) > 3 * views, "each gets its turn"
            disk.faults = 0
            await anyio.sleep(RETRY_MOST_SECONDS + RETRIES_APART_SECONDS)
            frames = d.got()
            told = [text(frames, f"n{number}") for number in range(views)]
            assert told == ["a"] * views


@pytest.mark.parametrize(
    ("window_bytes", "asked"),
    [(None, BLOCK_BYTES), (2**20, BLOCK_BYTES), (2_000, 2_000)],
)
async def test_no_more_is_asked_for_than_may_be_sent(
    window_bytes: int | None, asked: int
) -> None:
    disk = Asked()
    journal = await (await Journal(disk).told(*["x" * 100] * 10)).forgotten()
    async with desk() as d:
        d.view(journal, window_bytes=window_bytes)
        await settle()
        assert text(d.got()) == "x" * 1_000
    assert disk.sizes[0] == asked


async def test_an_outage_is_told_of_once_however_many_wait() -> None:
    disk = Asked()
    journals = [
        await (await Journal(disk, name).told("a")).forgotten() for name in "defg"
    ]
    disk.faults = 9
    with capture_logs() as lines:
        async with desk() as d:
            for journal in journals:
                d.view(journal)
            with anyio.fail_after(100):
                while disk.faults:
                    await anyio.sleep(0.1)
    assert [line["event"] for line in lines] == ["history_unavailable"]
