"""A wake-up reaches all who wait when it is given, and nobody else."""

import anyio

from wsserver.log.wakeup import Wakeup


async def test_all_who_wait_are_woken_each_time() -> None:
    wakeup, woken = Wakeup(), list[str]()

    async def wait(name: str) -> None:
        await wakeup.wait()
        woken.append(name)

    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            for names in ("ab", "c"):
                woken.clear()
                for name in names:
                    tasks.start_soon(wait, name)
                await anyio.wait_all_tasks_blocked()
                assert woken == []
                wakeup.give()
                await anyio.wait_all_tasks_blocked()
                assert sorted(woken) == list(names)


async def test_what_was_given_before_wakes_nobody() -> None:
    wakeup = Wakeup()
    wakeup.give()
    with anyio.move_on_after(0.01) as bound:
        await wakeup.wait()
    assert bound.cancelled_caught


async def test_who_waits_no_more_is_in_nobodys_way() -> None:
    wakeup = Wakeup()
    with anyio.move_on_after(0):
        await wakeup.wait()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeup.wait)
        await anyio.wait_all_tasks_blocked()
        wakeup.give()
