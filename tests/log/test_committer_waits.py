"""Whenever somebody begins to wait for a commit, it is soon."""

from collections.abc import Sequence
from random import Random

import anyio
import pytest

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.committing import log_of
from wsserver.log.committer import HURRY_SECONDS, Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import MisfitError, Write
from wsserver.log.waiting import until_stored

INTERVAL_SECONDS = 0.008
PAUSES = (0.0, 0.0, 0.0001, 0.001, 0.002, 0.003, 0.006, 0.00799, 0.008, 0.0081, 0.02)
TICK_SECONDS = 0.0002  # what the loop's clock may round up, twice


class Moody(FaultyStore):
    """Takes its time over commits, and refuses some keys.

    Attributes:
        refused: Keys whose writes do not fit.
        commits_at: When each commit began and ended.
    """

    def __init__(self, chance: Random, slowest: float) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.commits_at: list[tuple[float, float]] = []
        self._chance = chance
        self._slowest = slowest

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        began = anyio.current_time()
        await anyio.sleep(self._chance.choice([0.0, 0.0002, 0.001, self._slowest]))
        self.commits_at.append((began, anyio.current_time()))
        for write in writes:
            if write.key in self.refused:
                raise MisfitError(write.key, "does not follow", compaction=False)
        await super().commit(writes, now)

    def allowed(self, begin: float, end: float, rests: int) -> float:
        """Returns how long a wait may take: for commits, and rests beside them."""
        spans = [span for span in self.commits_at if span[0] <= end]
        busy = sum(max(0.0, done - max(began, begin)) for began, done in spans)
        took = [done - began for began, done in spans if done > begin]
        before = [done - began for began, done in spans if done <= begin][-1:]
        longest = max(took + before, default=0.0)
        rest = min(max(HURRY_SECONDS, 2 * longest), INTERVAL_SECONDS)
        return busy + rests * rest + TICK_SECONDS


class Waits:
    """Logs that people wait for, each in one of the ways there are."""

    def __init__(self, store: Moody) -> None:
        self.took: list[tuple[float, float]] = []
        self.committer = Committer(
            store,
            interval_seconds=INTERVAL_SECONDS,
            wall=lambda: 1.0,
            metrics=NoMetrics(),
        )
        self._store = store

    def log(self, key: str) -> ConversationLog:
        return log_of(self.committer, self._store, key)

    async def actively(self, log: ConversationLog) -> None:
        """Waits as what goes on in the process does."""
        began = anyio.current_time()
        await until_stored(log, log.head)
        self.took.append((began, anyio.current_time()))

    async def passively(self, log: ConversationLog, changes: int, began: float) -> None:
        """Waits as replies do: for what was hurried before."""
        while log.settled < changes:
            moved = anyio.Event()
            log.subscribe(moved.set)
            await moved.wait()
            log.unsubscribe(moved.set)
        self.took.append((began, anyio.current_time()))


@pytest.mark.parametrize("misfits", [False, True], ids=["", "misfits"])
@pytest.mark.parametrize("slowest", [0.001, 0.003, 0.02])
async def test_nobody_waits_as_if_only_text_went_on(
    slowest: float, misfits: bool
) -> None:
    chance = Random(f"{slowest} {misfits}")
    store = Moody(chance, slowest)
    waits = Waits(store)
    logs = [waits.log(f"s/{number}") for number in range(4)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waits.committer.run)
        with anyio.fail_after(1000):
            async with anyio.create_task_group() as waiting:
                for number in range(300):
                    log = chance.choice(logs)
                    log.append_text("delta", 1, "x")
                    match chance.randrange(6):
                        case 0 | 1:
                            log.hurry()
                            # Text that comes before the task begins is not hurried.
                            since = log.changes, anyio.current_time()
                            waiting.start_soon(waits.passively, log, *since)
                        case 2:
                            waiting.start_soon(waits.actively, log)
                        case 3 if misfits:
                            store.refused.add(f"s/bad{number}")
                            waits.log(f"s/bad{number}").touch()
                            continue
                        case _:
                            pass
                    await anyio.sleep(chance.choice(PAUSES))
        tasks.cancel_scope.cancel()
    assert len(waits.took) > 100
    # What a misfit takes with it is tried again after another rest.
    rests = 3 if misfits else 1
    for begin, end in waits.took:
        assert end - begin <= store.allowed(begin, end, rests)
