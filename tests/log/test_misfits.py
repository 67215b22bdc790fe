"""A write that does not fit harms no other conversation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.committing import log_of, say
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta, Write


class Desk:
    """A committer over a store, and logs of it."""

    def __init__(self, store: FaultyStore) -> None:
        self.store = store
        self.committer = Committer(
            store, interval_seconds=0.0, wall=lambda: 1.0, metrics=NoMetrics()
        )
        self.failures = 0
        self.misfits: list[str] = []
        self.committer.on_failure = self._failed
        self.committer.on_misfit = lambda log: self.misfits.append(log.key)

    def _failed(self) -> None:
        self.failures += 1

    def log(self, key: str) -> ConversationLog:
        return log_of(self.committer, self.store, key)


@asynccontextmanager
async def desk() -> AsyncGenerator[Desk]:
    made = Desk(FaultyStore())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.committer.run)
        with anyio.fail_after(5.0):
            yield made
        tasks.cancel_scope.cancel()


async def test_what_does_not_follow_is_set_aside_and_the_others_are_stored() -> None:
    async with desk() as d:
        bad, good = d.log("s/bad"), d.log("s/good")
        meta = Meta(epoch="x", head=7, oldest=1, live=False, state=b"")
        await d.store.commit([Write(key="s/bad", meta=meta)], 1.0)
        say(bad, "one")
        say(good, "one")
        await d.committer.flush()
        assert (good.stored, bad.stored) == (1, 0)
        assert (d.misfits, d.failures, d.committer.failing) == (["s/bad"], 0, False)
        assert bad.stalled, "who waits for it is told"
        say(bad, "two")
        say(good, "two")
        await d.committer.flush()
        assert good.stored == 2
        assert d.misfits == ["s/bad"], "it is not tried again and again"
        await d.committer.delete("s/bad")
        assert await d.store.meta("s/bad") is None


async def test_a_store_that_refuses_a_misfit_works_again() -> None:
    async with desk() as d:
        bad, good = d.log("s/bad"), d.log("s/good")
        meta = Meta(epoch="x", head=7, oldest=1, live=False, state=b"")
        await d.store.commit([Write(key="s/bad", meta=meta)], 1.0)
        recovered = anyio.Event()
        d.committer.on_recovery = recovered.set
        d.store.failing = True
        say(bad, "one")
        while not d.committer.failing:
            await anyio.sleep(0.001)
        d.store.failing = False
        await recovered.wait()  # nothing else is due that could show it
        assert (d.misfits, d.committer.failing) == (["s/bad"], False)
        say(good, "one")
        await d.committer.flush()
        assert (good.stored, good.stalled) == (1, False)


async def test_what_can_not_be_compacted_is_stored_as_it_is() -> None:
    async with desk() as d:
        bad, good = d.log("s/bad"), d.log("s/good")
        say(bad, "one", "two", "three")
        await d.committer.flush()
        bad._compact_from = 2
        say(bad, "four")
        bad.compact_soon()
        say(good, "one")
        await d.committer.flush()
        assert (bad.stored, good.stored) == (4, 1)
        assert (d.misfits, d.failures) == ([], 0)
        say(bad, "five", "six")
        bad.compact_soon()
        await d.committer.flush()
        assert bad.clean
        kept = await d.store.read("s/bad", 0, 10**6)
        assert [entry.seq for entry in kept] == [1, 2, 3, 6]
