"""Waiting for a log to be stored, to be kept, or to be gone."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from protocol.merge import MAX_MERGED_BYTES
from tests.fakes.faulty import FaultyStore
from tests.log.committing import turns_of_the_loop
from tests.log.made import NEW, Made, made
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import StoreError
from wsserver.log.waiting import until_kept, until_stored

Wait = Callable[[ConversationLog], Awaitable[None]]


def new() -> Made:
    """Returns a log that the store does not know of."""
    m = made()
    m.log = ConversationLog(
        "s/new", NEW, m.store, lambda _: None, lambda: (b"", True), kept=False
    )
    return m


class Waiting:
    """Somebody who waits, and what came of it."""

    def __init__(self) -> None:
        self.over = False
        self.error = ""

    async def run(self, wait: Wait, log: ConversationLog) -> None:
        try:
            await wait(log)
        except StoreError as error:
            self.error = str(error)
        self.over = True


async def first_stored(log: ConversationLog) -> None:
    await until_stored(log, 1)


@pytest.mark.parametrize("wait", [first_stored, until_kept])
@pytest.mark.parametrize("end", ["commit", "delete", "stall"])
async def test_a_wait_ends_with_what_it_waits_for_or_with_the_log(
    wait: Wait, end: str
) -> None:
    m, waiting = new(), Waiting()
    m.say(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting.run, wait, m.log)
        await turns_of_the_loop()
        assert not waiting.over
        match end:
            case "commit":
                await m.commit()
            case "delete":
                m.log.delete()
            case _:
                m.log.stall()
        await turns_of_the_loop()
        refused = end == "stall" and wait is until_kept
        assert waiting.over == (end != "stall" or refused)
        assert waiting.error == ("s/new is not stored yet" if refused else "")
        tasks.cancel_scope.cancel()
    assert not m.log._wakes, "nobody is left there"


async def test_what_is_there_is_not_waited_for() -> None:
    m = new()
    m.say(1)
    await m.commit()
    m.log.stall()
    with anyio.fail_after(1):
        await until_stored(m.log, 1)
        await until_kept(m.log)


@pytest.mark.parametrize(("size", "numbers"), [(-1, 1), (0, 1), (1, 2)])
def test_a_number_holds_as_much_as_a_frame_may(size: int, numbers: int) -> None:
    log = Made(FaultyStore()).log
    log.append_text("delta", 1, "x" * (MAX_MERGED_BYTES + size))
    assert log.head == numbers
