"""How soon a commit follows another: by who waits for it, and by the store."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from protocol.events import UsageEvent
from tests.fakes.faulty import FaultyStore
from tests.log.committing import committing, say, turns_of_the_loop
from wsserver.log.committer import (
    HURRY_SECONDS,
    LAZY_LOGS,
    LAZY_SECONDS,
)
from wsserver.log.conversation_log import SEAL_AFTER, ConversationLog
from wsserver.log.store import Receipt, Write
from wsserver.log.waiting import until_stored

USAGE = {"input_tokens": 1, "output_tokens": 1, "estimated": False, "model_calls": 1}
RECEIPT = Receipt(principal="p", id="i", digest=b"d", reply=b"{}", at=1.0)


@pytest.mark.parametrize(
    "go_on",
    [
        lambda log: say(log, "more"),
        lambda log: log.append(UsageEvent, turn=1, **USAGE),
        lambda log: log.remember(RECEIPT),
    ],
    ids=["text", "event", "receipt"],
)
async def test_what_nobody_waits_for_is_committed_at_a_distance(
    go_on: Callable[[ConversationLog], Any],
) -> None:
    async with committing(interval_seconds=0.3) as r:
        log = r.log()
        began = anyio.current_time()
        go_on(log)
        await anyio.sleep(0.01)
        assert log.clean, "the first goes at once"
        go_on(log)
        await anyio.sleep(0.28)
        assert not log.clean
        await anyio.sleep(0.02)
        assert log.clean
        assert anyio.current_time() - began < 0.32


@pytest.mark.parametrize(
    "somebody_waits",
    [
        lambda log: log.hurry(),
        lambda log: until_stored(log, log.head),
    ],
    ids=["says so", "waits"],
)
async def test_what_somebody_waits_for_is_committed_soon(
    somebody_waits: Callable[[ConversationLog], Any],
) -> None:
    async with committing(interval_seconds=0.3) as r:
        log = r.log()
        say(log, "one")
        await anyio.sleep(0.1)
        say(log, "two")
        waiting = somebody_waits(log)
        if isinstance(waiting, Awaitable):
            await waiting
        await anyio.sleep(HURRY_SECONDS / 2)
        assert log.clean
        say(log, "three")
        await anyio.sleep(0.2)
        assert not log.clean, "the hurry is over"


async def test_a_wait_for_the_commit_under_way_hurries_no_other() -> None:
    async with committing(interval_seconds=0.3) as r:
        log = r.log()
        r.store.gate = anyio.Event()
        say(log, "one")
        await turns_of_the_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_stored, log, 1)
            await turns_of_the_loop()
            say(log, "two")
            r.store.gate.set()
        await anyio.sleep(0.1)
        assert log.stored == 1


async def test_a_flush_is_soon() -> None:
    async with committing(interval_seconds=0.3) as r:
        log = r.log()
        say(log, "one")
        await anyio.sleep(0.1)
        say(log, "two")
        began = anyio.current_time()
        await r.committer.flush()
        assert anyio.current_time() - began < 0.01
        assert log.stored == 2
        await anyio.sleep(HURRY_SECONDS)
        say(log, "three")
        await anyio.sleep(0.01)
        say(log, "four")
        await anyio.sleep(0.28)
        assert log.stored == 3, "nobody waits any more"


@pytest.mark.parametrize("takes", [0.0, 0.05])
async def test_commits_in_a_hurry_keep_a_distance_too(takes: float) -> None:
    """Else a crowd that waits would have the machine do nothing but commit."""
    begins: list[float] = []

    class Slow(FaultyStore):
        async def commit(self, writes: Sequence[Write], now: float) -> None:
            begins.append(anyio.current_time())
            await anyio.sleep(takes)
            await super().commit(writes, now)

    async with committing(interval_seconds=0.3, store=Slow()) as r:
        log = r.log()
        for _ in range(200):
            say(log, "x")
            log.hurry()
            await anyio.sleep(HURRY_SECONDS / 4)
        await r.committer.flush()
    distances = [later - earlier for earlier, later in pairwise(begins)]
    least = max(HURRY_SECONDS, 2 * takes)
    assert len(distances) >= 0.9 * (50 * HURRY_SECONDS / least)
    for distance in distances:
        assert least * 0.99 <= distance < least * 1.3


async def test_a_flush_is_not_held_up_by_what_still_comes_in() -> None:
    async with committing(interval_seconds=100.0) as r:
        log = r.log()

        def go_on(written: ConversationLog) -> None:
            if written.head < 5:
                say(written, "more")

        r.committer.on_settled = go_on
        say(log, "one")
        began = anyio.current_time()
        await r.committer.flush()
        assert anyio.current_time() - began < 1.0
        assert log.stored == 5


async def test_a_store_that_is_not_durable_is_not_hurried() -> None:
    async with committing(durable=False) as r:
        log = r.log()
        for _ in range(3):
            log.append(UsageEvent, turn=1, **USAGE)
            log.hurry()
            await anyio.sleep(0.01)
        assert len(r.store.commits) == 1
        await anyio.sleep(LAZY_SECONDS * 0.9 - 0.03)
        assert not log.clean
        await anyio.sleep(LAZY_SECONDS * 0.2)
        assert log.clean
        assert len(r.store.commits) == 2


async def test_a_store_that_is_not_durable_gets_text_when_it_has_become_long() -> None:
    async with committing(durable=False) as r:
        log = r.log()
        for _ in range(SEAL_AFTER):
            say(log, "x")
        await anyio.sleep(2 * LAZY_SECONDS)
        assert (log.stored, r.store.commits) == (SEAL_AFTER, [])
        say(log, "y")
        await anyio.sleep(2 * LAZY_SECONDS)
        assert log.clean
        assert len(log.tail(1)) == 1, "joined"
        say(log, "z")
        log.append(UsageEvent, turn=1, **USAGE)
        await anyio.sleep(2 * LAZY_SECONDS)
        assert log.clean, "other events take text with them"


async def test_many_logs_of_a_store_that_is_not_durable_go_in_pieces() -> None:
    async with committing(durable=False) as r:
        logs = [r.log(f"s/{number}") for number in range(3 * LAZY_LOGS + 1)]
        for log in logs:
            log.touch()
        while len(r.store.commits) < 4:
            await anyio.lowlevel.checkpoint()
            logs[0].touch()
        sizes = [len(commit) for commit in r.store.commits]
        assert sizes == [LAZY_LOGS, LAZY_LOGS, LAZY_LOGS, 2]
        await anyio.sleep(LAZY_SECONDS * 0.5)
        assert len(r.store.commits) == 4
        await anyio.sleep(LAZY_SECONDS)
        assert all(log.clean for log in logs)
