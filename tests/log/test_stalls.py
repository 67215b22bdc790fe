"""A commit that takes too long: who waits is told, and told when it is over."""

import anyio
import pytest

from tests.fakes.faulty import FaultyStore
from tests.log.committing import Rig, committing, say, turns_of_the_loop
from wsserver.log.committer import STALL_SECONDS
from wsserver.log.conversation_log import ConversationLog


def stalled(r: Rig, *logs: ConversationLog) -> tuple[bool, ...]:
    return (r.committer.stalled, *(log.stalled for log in logs))


def hold(store: FaultyStore) -> anyio.Event:
    """Lets the next commits wait for what this returns."""
    store.gate = anyio.Event()
    return store.gate


async def test_a_commit_is_overdue_after_a_second_and_no_sooner() -> None:
    async with committing() as r:
        written, due = r.log("s/written"), r.log("s/due")
        wakes: list[str] = []
        for log in (written, due):
            log.subscribe(lambda key=log.key: wakes.append(key))
        hold(r.store)
        say(written, "one")
        await turns_of_the_loop()
        say(due, "one")
        await anyio.sleep(STALL_SECONDS - 0.01)
        assert stalled(r, written, due) == (False, False, False)
        assert wakes == []
        await anyio.sleep(0.02)
        assert stalled(r, written, due) == (True, True, True)
        assert wakes == ["s/written", "s/due"]
        assert not r.committer.failing, "it may succeed yet"


async def test_what_comes_to_a_store_that_stalls_is_told_so_at_once() -> None:
    async with committing() as r:
        hold(r.store)
        say(r.log("s/written"), "one")
        await anyio.sleep(STALL_SECONDS + 0.01)
        late = r.log("s/late")
        assert not late.stalled
        say(late, "one")
        assert late.stalled


async def test_once_it_has_ended_the_rest_waits_as_ever() -> None:
    async with committing() as r:
        gate = hold(r.store)
        written, due = r.log("s/written"), r.log("s/due")
        say(written, "one")
        await turns_of_the_loop()
        say(due, "one")
        await anyio.sleep(STALL_SECONDS + 0.01)
        gate.set()
        gate = hold(r.store)
        await turns_of_the_loop()
        assert (written.stored, due.stored) == (1, 0)
        assert stalled(r, written, due) == (False, False, False)
        await anyio.sleep(STALL_SECONDS - 0.01)
        assert not due.stalled
        await anyio.sleep(0.02)
        assert due.stalled, "its own commit takes as long"
        gate.set()
        await r.committer.flush()
        assert (due.stored, due.stalled) == (1, False)


async def test_so_it_does_when_a_store_that_failed_works_again() -> None:
    async with committing() as r:
        r.store.failing = True
        failed = r.log("s/failed")
        say(failed, "one")
        await anyio.sleep(0.01)
        assert failed.stalled
        r.store.failing = False
        gate = hold(r.store)
        await anyio.sleep(0.1)
        due = r.log("s/due")
        say(due, "one")
        assert due.stalled
        gate.set()
        hold(r.store)
        await turns_of_the_loop()
        assert (failed.stored, due.stored) == (1, 0)
        assert stalled(r, failed, due) == (False, False, False)


@pytest.mark.parametrize("seconds", [0.4, 0.9])
async def test_many_commits_that_each_take_less_are_no_stall(seconds: float) -> None:
    async with committing() as r:
        log = r.log()
        for _ in range(5):
            gate = hold(r.store)
            say(log, "x")
            await anyio.sleep(seconds)
            assert stalled(r, log) == (False, False)
            gate.set()
            await turns_of_the_loop()


async def test_nobody_waits_for_a_store_that_keeps_nothing() -> None:
    async with committing(durable=False) as r:
        log = r.log()
        hold(r.store)
        log.touch()
        await anyio.sleep(STALL_SECONDS + 1)
        assert not log.stalled
