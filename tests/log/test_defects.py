"""A defect of a store, a log or who follows it is named, and ends no other."""

import asyncio
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import NoMetrics
from tests.log.committing import committing, log_of, say, turns_of_the_loop
from tests.turns.served import Panic
from wsserver.lifecycle.background import kept
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog


def broken(*_: object, **__: object) -> Any:
    raise RuntimeError("a defect")


def of(log: ConversationLog, method: str, patch: pytest.MonkeyPatch) -> None:
    """Makes a method fail at its end, of one log only."""
    works = getattr(ConversationLog, method)

    def fails(one: ConversationLog, *args: Any) -> Any:
        came = works(one, *args)
        return broken() if one is log else came

    patch.setattr(ConversationLog, method, fails)


def named(lines: list[Any]) -> set[str]:
    return {line["event"] for line in lines}


class Broken(FaultyStore):
    """Fails with anything for as long as it is told to."""

    error: BaseException | None = RuntimeError("a defect")

    async def commit(self, writes: Any, now: float) -> None:
        if self.error is not None:
            raise self.error
        await super().commit(writes, now)


@pytest.mark.parametrize("error", [RuntimeError(), Panic(), SystemExit(2)], ids=repr)
async def test_a_store_that_is_defective_is_one_that_fails(
    error: BaseException,
) -> None:
    store = Broken()
    store.error = error
    async with committing(store=store) as rig:
        log = rig.log()
        with capture_logs() as lines:
            say(log, "one")
            await anyio.sleep(10)
        assert rig.committer.failing
        assert rig.failures > 1
        assert {"store_defective", "store_failing"} <= named(lines)
        assert log.stored == 0
        store.error = None
        await rig.committer.flush()
        assert log.stored == await rig.stored() == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_store_that_cancels_itself_makes_nothing_forgotten(
    anyio_backend: str,
) -> None:
    del anyio_backend
    store = Broken()
    store.error = asyncio.CancelledError()
    committer = Committer(
        store, interval_seconds=0, wall=lambda: 1.0, metrics=NoMetrics()
    )
    log = log_of(committer, store, "s/a")
    say(log, "one")
    async with anyio.create_task_group() as tasks:
        with capture_logs() as lines:
            tasks.start_soon(kept, "committer", committer.run)
            await turns_of_the_loop()
        assert committer.failing
        assert named(lines) == {"store_failing", "store_defective"}
        store.error = None
        await committer.flush()
        assert log.stored == 1
        tasks.cancel_scope.cancel()


async def test_a_log_that_gives_no_write_is_set_aside_and_the_others_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with committing() as rig:
        bad, good = rig.log("s/bad"), rig.log("s/good")
        aside: list[str] = []
        rig.committer.on_misfit = lambda log: aside.append(log.key)
        with capture_logs() as lines, monkeypatch.context() as patch:
            of(bad, "take_write", patch)
            say(bad, "one")
            say(good, "one")
            await rig.committer.flush()
        assert (good.stored, bad.stored, aside) == (1, 0, ["s/bad"])
        assert bad.stalled
        assert named(lines) == {"log_defective"}
        say(bad, "two")
        await rig.committer.flush()
        assert bad.stored == await rig.stored("s/bad") == 2


async def test_one_that_does_not_take_note_of_a_commit_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with committing() as rig:
        bad, good = rig.log("s/bad"), rig.log("s/good")
        with capture_logs() as lines, monkeypatch.context() as patch:
            of(bad, "committed", patch)
            say(bad, "one")
            say(good, "one")
            await rig.committer.flush()
        assert (good.stored, await rig.stored("s/bad")) == (1, 1)
        assert named(lines) == {"log_defective"}


async def test_a_follower_that_fails_holds_up_no_other() -> None:
    async with committing() as rig:
        log, woken = rig.log(), list[str]()
        log.subscribe(lambda: woken.append("before"))
        log.subscribe(broken)
        log.subscribe(lambda: woken.append("after"))
        with capture_logs() as lines:
            say(log, "one")
            await rig.committer.flush()
            assert (woken, log.stored) == (["before", "after"], 1)
            log.stall()
            log.delete()
        assert woken == ["before", "after"] * 3
        assert named(lines) == {"listener_defective"}


@pytest.mark.parametrize(
    ("told", "fails"),
    [("on_failure", True), ("on_recovery", True), ("on_settled", False)],
)
async def test_who_is_told_of_a_commit_holds_it_up_in_no_way(
    told: str, fails: bool
) -> None:
    async with committing() as rig:
        log = rig.log()
        setattr(rig.committer, told, broken)
        with capture_logs() as lines:
            rig.store.failing = fails
            say(log, "one")
            await anyio.sleep(1)
            rig.store.failing = False
            await rig.committer.flush()
        assert log.stored == await rig.stored() == 1
        assert "listener_defective" in named(lines)
        assert not rig.committer.failing
