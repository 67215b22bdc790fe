"""Text that a store takes at once, without a commit."""

from protocol.content import Config
from protocol.events import ConfigEvent, UsageEvent
from tests.fakes.faulty import FaultyStore
from tests.log.made import USAGE, Made
from tests.log.numbers import numbers
from wsserver.log.conversation_log import SEAL_AFTER
from wsserver.log.reading import read_whole


async def test_text_that_the_store_takes_at_once_is_seen_at_once() -> None:
    made = Made(FaultyStore(at_once=True))
    made.log.append(ConfigEvent, config=Config())
    made.say(2)
    assert (made.dirty, made.woken, made.log.stored) == (1, 0, 0), "what came before it"
    await made.commit()
    assert (made.woken, made.log.stored) == (1, 3)

    made.say(2)
    assert (made.dirty, made.woken, made.log.stored) == (1, 3, 5)
    assert made.log.clean
    assert len(numbers(await made.store.read("s/c", 0, 2**40))) == 5

    made.store.failing = True
    made.say(1)
    made.store.failing = False
    made.say(1)
    assert (made.dirty, made.woken, made.log.stored) == (2, 3, 5), "in order"
    await made.commit()
    made.say(SEAL_AFTER)
    assert (made.dirty, made.log.stored) == (2, 7 + SEAL_AFTER)
    assert len(made.log.tail(1)) < 10
    assert made.woken == 4 + SEAL_AFTER

    made.log.append(UsageEvent, turn=1, **USAGE)
    made.log.compact_soon()
    await made.commit()
    assert numbers(await read_whole(made.log, max_bytes=999)) == numbers(
        await made.store.read("s/c", 0, 2**40)
    )


async def test_text_of_a_deleted_log_goes_nowhere() -> None:
    made = Made(FaultyStore(at_once=True))
    made.say(1)
    await made.commit()
    made.log.delete()
    made.say(1)
    assert len(await made.store.read("s/c", 0, 2**40)) == 1
