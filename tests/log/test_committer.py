"""Group commit: in order, all or nothing, again until it works."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from protocol.events import UsageEvent
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.numbers import numbers
from wsserver.log.committer import (
    HURRY_SECONDS,
    LAZY_LOGS,
    LAZY_SECONDS,
    STALL_SECONDS,
    Committer,
)
from wsserver.log.conversation_log import SEAL_AFTER, ConversationLog
from wsserver.log.store import Meta, Receipt, StoreError, Write

USAGE = {"input_tokens": 1, "output_tokens": 1, "estimated": False, "model_calls": 1}
RECEIPT = Receipt(principal="p", id="i", digest=b"d", reply=b"{}", at=1.0)


class Rig:
    """A committer with logs over a store that obeys."""

    def __init__(self, store: FaultyStore, committer: Committer) -> None:
        self.store = store
        self.committer = committer
        self.failures = 0
        self.written: list[str] = []
        committer.on_failure = self._failed
        committer.on_settled = lambda log: self.written.append(log.key)

    def _failed(self) -> None:
        assert self.committer.failing
        self.failures += 1

    def log(self, key: str = "s/a") -> ConversationLog:
        meta = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
        return ConversationLog(
            key,
            meta,
            self.store,
            self.committer.mark,
            lambda: (b"", False),
            hurry=self.committer.hurry,
        )

    async def stored(self, key: str = "s/a") -> int:
        meta = await self.store.meta(key)
        return 0 if meta is None else meta.head


@asynccontextmanager
async def committing(
    interval_seconds: float = 0.0, store: FaultyStore | None = None, **members: Any
) -> AsyncGenerator[Rig]:
    store = store or FaultyStore(**members)
    committer = Committer(
        store,
        interval_seconds=interval_seconds,
        wall=lambda: 1.0,
        metrics=NoMetrics(),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(committer.run)
        with anyio.fail_after(1000):
            yield Rig(store, committer)
        tasks.cancel_scope.cancel()


def say(log: ConversationLog, *texts: str) -> None:
    for text in texts:
        log.append_text("delta", 1, text)


async def turns_of_the_loop() -> None:
    """Lets all go on that can, while no time passes."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_what_came_in_meanwhile_goes_down_as_one() -> None:
    async with committing() as r:
        first, second = r.log("s/a"), r.log("s/b")
        r.store.gate = anyio.Event()
        say(first, "one")
        await anyio.wait_all_tasks_blocked()
        say(first, "two", "three")
        say(second, "one")
        assert (first.stored, second.stored) == (0, 0)
        r.store.gate.set()
        await r.committer.flush()
        keys = [[write.key for write in writes] for writes in r.store.commits]
        assert keys == [["s/a"], ["s/a", "s/b"]]
        assert [len(w.entries) for w in r.store.commits[1]] == [2, 1]
        assert (first.stored, second.stored) == (3, 1)
        assert r.written == ["s/a", "s/a", "s/b"]


async def test_nothing_is_seen_before_the_store_has_it() -> None:
    async with committing() as r:
        log = r.log()
        seen: list[int] = []
        log.subscribe(lambda: seen.append(log.stored))
        for count in range(1, 6):
            r.store.gate = anyio.Event()
            say(log, "x")
            await anyio.wait_all_tasks_blocked()
            assert seen == list(range(1, count))
            assert await r.stored() == log.stored == count - 1
            r.store.gate.set()
            await log.until_stored(count)
            assert await r.stored() == count


async def test_a_failing_store_loses_nothing_and_is_tried_until_it_works() -> None:
    async with committing() as r:
        log = r.log()
        r.store.failing = True
        say(log, "one")
        await anyio.sleep(0.2)
        assert r.committer.failing
        assert r.failures >= 2
        say(log, "two")
        gone = r.log("s/gone")
        say(gone, "x")
        await anyio.sleep(0.2)
        assert (log.stored, log.clean, r.written) == (0, False, [])
        r.store.failing = False
        await r.committer.flush()
        assert not r.committer.failing
        assert (log.stored, log.clean) == (2, True)
        assert sorted(numbers(await r.store.read("s/a", 0, 999))) == [1, 2]


async def test_a_failing_store_is_given_ever_more_time() -> None:
    async with committing() as r:
        r.store.failing = True
        tries: list[float] = []
        r.committer.on_failure = lambda: tries.append(anyio.current_time())
        say(r.log(), "one")
        await anyio.sleep(1.3)
        waits = [b - a for a, b in pairwise(tries)]
        assert len(waits) == 4
        for wait, least in zip(waits, [0.05, 0.1, 0.2, 0.4], strict=True):
            assert wait >= least * 0.99


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
        lambda log: log.until_stored(log.head),
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
            tasks.start_soon(log.until_stored, 1)
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


async def test_a_flush_waits_for_a_store_that_fails() -> None:
    async with committing() as r:
        r.store.failing = True
        log = r.log()
        say(log, "one")
        with anyio.move_on_after(0.5) as bound:
            await r.committer.flush()
        assert bound.cancelled_caught
        r.store.failing = False
        await r.committer.flush()
        assert log.stored == 1
        await r.committer.flush()


async def test_a_commit_under_way_is_finished_when_the_committer_is_cancelled() -> None:
    store = FaultyStore()
    committer = Committer(
        store, interval_seconds=0, wall=lambda: 1.0, metrics=NoMetrics()
    )
    log = Rig(store, committer).log()
    store.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(committer.run)
        say(log, "one")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        store.gate.set()
    assert log.stored == len(store.commits) == 1


async def test_what_is_no_fault_of_the_store_is_not_hidden() -> None:
    class Broken(FaultyStore):
        async def commit(self, writes: Any, now: float) -> None:
            raise ZeroDivisionError

    committer = Committer(
        Broken(), interval_seconds=0, wall=lambda: 1.0, metrics=NoMetrics()
    )
    say(Rig(FaultyStore(), committer).log(), "x")
    with pytest.raises(ExceptionGroup) as raised:
        await committer.run()
    assert raised.group_contains(ZeroDivisionError)


# Deleting


async def test_deleting_takes_all_there_is() -> None:
    async with committing() as r:
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        say(log, "two")
        log.delete()
        await r.committer.delete("s/a")
        assert await r.store.meta("s/a") is None
        say(log, "three")
        await anyio.wait_all_tasks_blocked()
        assert await r.store.meta("s/a") is None, "a deleted log is not written"


async def test_deleting_while_a_commit_writes_the_same_conversation() -> None:
    async with committing() as r:
        log = r.log()
        r.store.gate = anyio.Event()
        say(log, "one")
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as tasks:
            log.delete()
            tasks.start_soon(r.committer.delete, "s/a")
            await anyio.wait_all_tasks_blocked()
            assert r.committer.deletes("s/a")
            r.store.gate.set()
        assert not r.committer.deletes("s/a")
        assert await r.store.meta("s/a") is None


async def test_a_key_that_is_deleted_and_begun_anew_holds_the_new() -> None:
    async with committing() as r:
        old = r.log()
        say(old, "old", "old")
        await r.committer.flush()
        r.store.gate = anyio.Event()
        say(r.log("s/b"), "x")
        await anyio.wait_all_tasks_blocked()
        old.delete()
        r.committer.discard("s/a")
        new = r.log()
        say(new, "new")
        r.store.gate.set()
        await r.committer.until_deleted("s/a")
        await r.committer.flush()
        assert await r.stored() == new.stored == 1


async def test_all_who_delete_are_told_also_when_the_store_fails_in_between() -> None:
    async with committing() as r:
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        r.store.gate, r.store.failing = anyio.Event(), True
        log.delete()
        told: list[str] = []

        async def delete() -> None:
            with pytest.raises(StoreError, match="s/a"):
                await r.committer.delete("s/a")
            told.append("not yet")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(delete)
            await anyio.wait_all_tasks_blocked()
            assert told == []
            r.store.gate.set()
        assert r.committer.deletes("s/a")
        assert await r.stored() == 1
        r.store.failing = False
        await r.committer.flush()
        assert await r.store.meta("s/a") is None
        assert not r.committer.deletes("s/a")


async def test_who_deletes_is_told_when_the_store_hangs_and_it_goes_all_the_same() -> (
    None
):
    async with committing() as r:
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        r.store.gate = anyio.Event()
        log.delete()
        for _ in range(2):
            with anyio.fail_after(2 * STALL_SECONDS), pytest.raises(StoreError):
                await r.committer.delete("s/a")
        r.store.gate.set()
        await r.committer.flush()
        assert await r.store.meta("s/a") is None


async def test_a_deletion_goes_on_when_who_asked_for_it_is_gone() -> None:
    async with committing() as r:
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        log.delete()
        with anyio.move_on_after(0):
            await r.committer.delete("s/a")
        await r.committer.flush()
        assert await r.store.meta("s/a") is None


async def test_a_log_that_was_deleted_while_its_commit_failed_stays_deleted() -> None:
    async with committing() as r:
        log = r.log()
        r.store.gate, r.store.failing = anyio.Event(), True
        say(log, "one")
        await anyio.wait_all_tasks_blocked()
        log.delete()
        r.committer.discard("s/a")
        r.store.gate.set()
        await anyio.sleep(0.2)
        r.store.failing = False
        await r.committer.flush()
        assert await r.store.meta("s/a") is None


async def test_reading_from_a_broken_store_does_not_stop_commits() -> None:
    async with committing() as r:
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        r.store.failing_reads = 1
        with pytest.raises(StoreError):
            await log.fetch(0, 99)
        say(log, "two")
        await r.committer.flush()
        assert log.stored == 2
