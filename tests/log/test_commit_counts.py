"""What is counted of commits."""

import anyio

from tests.fakes.counted import Recorder
from tests.fakes.faulty import FaultyStore
from tests.log.committing import committing, say
from wsserver.log.store import Meta, Write


async def test_a_commit_is_counted_with_its_time_and_all_entries_since_the_last() -> (
    None
):
    metrics = Recorder()
    async with committing(store=FaultyStore(at_once=True), metrics=metrics) as r:
        r.live = True
        log = r.log()
        say(log, "one")
        await r.committer.flush()
        say(log, "at", "once")
        assert log.clean
        r.store.gate = anyio.Event()
        log.touch()
        await anyio.sleep(0.1)
        r.store.gate.set()
        await r.committer.flush()
        log.touch()
        await r.committer.flush()
    assert [entries for _, entries in metrics.of("commit")] == [1, 2, 0]
    quick, slow, _ = [seconds for seconds, _ in metrics.of("commit")]
    assert 0 <= quick < 0.01
    assert 0.09 < slow < 0.11
    assert metrics.of("commit_failed") == []


async def test_each_commit_that_fails_is_counted() -> None:
    metrics = Recorder()
    async with committing(metrics=metrics) as r:
        r.store.failing = True
        say(r.log(), "one")
        await anyio.sleep(0.2)
        assert len(metrics.of("commit_failed")) == r.failures >= 2
        assert metrics.of("commit") == []
        r.store.failing = False
        await r.committer.flush()
    assert [entries for _, entries in metrics.of("commit")] == [1]


async def test_so_is_one_with_a_write_that_does_not_fit() -> None:
    metrics = Recorder()
    async with committing(metrics=metrics) as r:
        meta = Meta(epoch="x", head=7, oldest=1, live=False, state=b"")
        await r.store.commit([Write(key="s/bad", meta=meta)], 1.0)
        say(r.log("s/bad"), "one")
        say(r.log("s/good"), "one", "two")
        await r.committer.flush()
    assert metrics.of("commit_failed") == [[]]
    assert [entries for _, entries in metrics.of("commit")] == [2]
