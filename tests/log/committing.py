"""A committer with logs, over a store that obeys."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta, Store


def log_of(
    committer: Committer, store: Store, key: str, *, live: bool = False
) -> ConversationLog:
    """Returns a new log that the committer writes."""
    meta = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
    return ConversationLog(
        key,
        meta,
        store,
        committer.mark,
        lambda: (b"", live),
        hurry=committer.hurry,
    )


class Rig:
    """A committer with logs over a store that obeys."""

    def __init__(self, store: FaultyStore, committer: Committer) -> None:
        self.store = store
        self.committer = committer
        self.failures = 0
        self.live = False  # whether turns run in the logs that are made from now on
        self.written: list[str] = []
        committer.on_failure = self._failed
        committer.on_settled = lambda log: self.written.append(log.key)

    def _failed(self) -> None:
        assert self.committer.failing
        self.failures += 1

    def log(self, key: str = "s/a") -> ConversationLog:
        return log_of(self.committer, self.store, key, live=self.live)

    async def stored(self, key: str = "s/a") -> int:
        meta = await self.store.meta(key)
        return 0 if meta is None else meta.head


@asynccontextmanager
async def committing(
    interval_seconds: float = 0.0,
    store: FaultyStore | None = None,
    metrics: Any = None,
    **members: Any,
) -> AsyncGenerator[Rig]:
    store = store or FaultyStore(**members)
    committer = Committer(
        store,
        interval_seconds=interval_seconds,
        wall=lambda: 1.0,
        metrics=metrics or NoMetrics(),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(committer.run)
        try:
            with anyio.fail_after(1000):
                yield Rig(store, committer)
        finally:
            store.gate.set()  # a commit under way is finished before all ends
        tasks.cancel_scope.cancel()


def say(log: ConversationLog, *texts: str) -> None:
    for text in texts:
        log.append_text("delta", 1, text)


async def turns_of_the_loop() -> None:
    """Lets all go on that can, while no time passes."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
