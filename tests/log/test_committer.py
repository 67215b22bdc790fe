"""Group commit: in order, all or nothing, again until it works."""

from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.committing import Rig, committing, say
from tests.log.numbers import numbers
from wsserver.log.committer import Committer
from wsserver.log.waiting import until_stored


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
            await until_stored(log, count)
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
        await anyio.sleep(10.0)
        waits = [b - a for a, b in pairwise(tries)]
        wanted = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
        assert waits == pytest.approx(wanted, rel=0.02)
        r.store.failing = False
        await r.committer.flush()
        r.store.failing = True
        tries.clear()
        say(r.log("s/b"), "one")
        await anyio.sleep(0.1)
        waits = [b - a for a, b in pairwise(tries)]
        assert waits == pytest.approx(wanted[:1], rel=0.02), "it works again"


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
