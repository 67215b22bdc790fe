"""Commits in pieces, whatever happens between two of them."""

from collections.abc import Sequence
from random import Random

import anyio
import anyio.lowlevel
import pytest

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.numbers import numbers
from wsserver.log.committer import LAZY_LOGS, LAZY_SECONDS, Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta, MisfitError, Write

KEYS = [f"s/{number}" for number in range(5 * LAZY_LOGS)]


class Picky(FaultyStore):
    """Refuses writes of some keys, as if they did not follow on what it has."""

    def __init__(self, *, durable: bool) -> None:
        super().__init__(durable=durable)
        self.refused: set[str] = set()

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        for write in writes:
            if write.key in self.refused and not write.delete:
                raise MisfitError(write.key, "does not follow", compaction=False)
        await super().commit(writes, now)


class Play:
    """Conversations that talk, go and begin anew while they are written.

    Attributes:
        logs: Those that are there, and can be written.
        misfits: Those that can't.
    """

    def __init__(self, store: Picky, chance: Random) -> None:
        self.store = store
        self.chance = chance
        self.logs: dict[str, ConversationLog] = {}
        self.misfits: set[str] = set()
        self.epochs = 0
        self.committer = Committer(
            store, interval_seconds=0.0, wall=lambda: 1.0, metrics=NoMetrics()
        )
        self.committer.on_misfit = self._misfits

    def _misfits(self, log: ConversationLog) -> None:
        assert self.logs.pop(log.key) is log
        self.misfits.add(log.key)
        self.store.refused.discard(log.key)

    def say(self, key: str) -> None:
        if key not in self.logs and key not in self.misfits:
            self.epochs += 1
            epoch = f"e{self.epochs}"
            meta = Meta(epoch=epoch, head=0, oldest=1, live=False, state=b"")
            self.logs[key] = ConversationLog(
                key, meta, self.store, self.committer.mark, lambda: (b"", False)
            )
        if key in self.logs:
            self.logs[key].append_text("delta", 1, f"{self.logs[key].head} ")
            self.logs[key].touch()

    def forget(self, key: str) -> None:
        if key in self.logs:
            self.logs.pop(key).delete()
            self.committer.discard(key)

    async def step(self) -> None:
        """Lets some conversations go, some talk, and then maybe some time pass."""
        chance = self.chance
        for key in chance.sample(KEYS, chance.choice([0, 0, 1, 40])):
            self.forget(key)
        for key in chance.sample(KEYS, chance.choice([0, 1, 40])):
            self.say(key)
        if chance.random() < 0.1:
            self.store.refused.add(chance.choice(KEYS))
        self.store.failing = chance.random() < 0.03
        for _ in range(chance.randint(0, 5)):
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(chance.choice([0, 0, 0, 0.001, 0.1, 0.3]))

    async def check(self) -> None:
        for key in KEYS:
            log, meta = self.logs.get(key), await self.store.meta(key)
            if log is None:
                assert key in self.misfits or meta is None, f"{key} is gone"
                continue
            assert meta is not None
            assert (meta.epoch, meta.head, log.clean) == (log.epoch, log.head, True)
            entries = await self.store.read(key, 0, 10**9)
            assert list(numbers(entries)) == list(range(1, log.head + 1))


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("seed", range(4))
async def test_all_that_is_there_is_stored_and_nothing_else(
    seed: int, durable: bool
) -> None:
    play = Play(Picky(durable=durable), Random(seed))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play.committer.run)
        with anyio.fail_after(1000):
            for _ in range(150):
                await play.step()
            play.store.failing = False
            if seed % 2:
                await play.committer.flush()
            else:
                await anyio.sleep(60)  # by itself, too
            await play.check()
        tasks.cancel_scope.cancel()


async def test_who_deletes_waits_for_one_piece_only() -> None:
    play = Play(Picky(durable=False), Random(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play.committer.run)
        for number in range(1000):
            play.say(f"s/many-{number}")
        await anyio.wait_all_tasks_blocked()
        play.say(KEYS[0])
        await play.committer.flush()
        for number in range(1000):
            play.say(f"s/many-{number}")
        before = len(play.store.commits)
        play.logs.pop(KEYS[0]).delete()
        await play.committer.delete(KEYS[0])
        assert len(play.store.commits) - before <= 2
        tasks.cancel_scope.cancel()


async def test_what_is_deleted_between_pieces_leaves_the_pace_as_it_was() -> None:
    play = Play(Picky(durable=False), Random(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play.committer.run)
        for key in KEYS:
            play.say(key)
        while not play.store.commits:
            await anyio.lowlevel.checkpoint()
        for key in KEYS:
            play.forget(key)
        await anyio.sleep(1)
        before = len(play.store.commits)
        for _ in range(4):
            play.say(KEYS[0])
            await anyio.sleep(LAZY_SECONDS / 10)
        assert len(play.store.commits) - before == 1
        tasks.cancel_scope.cancel()


async def test_what_talks_on_while_pieces_are_written_waits_for_the_next_round() -> (
    None
):
    play = Play(Picky(durable=False), Random(0))
    play.committer.on_settled = lambda log: play.say(log.key)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play.committer.run)
        for key in KEYS:
            play.say(key)
        await anyio.sleep(LAZY_SECONDS / 2)
        assert len(play.store.commits) == len(KEYS) // LAZY_LOGS
        tasks.cancel_scope.cancel()
