"""Deleting, beside commits and between them."""

import anyio
import anyio.lowlevel
import pytest

from tests.log.committing import committing, say
from wsserver.log.committer import (
    STALL_SECONDS,
)
from wsserver.log.store import StoreError


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
