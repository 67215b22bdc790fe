"""Which changes of a turn somebody waits for, so that their commit is soon."""

import anyio

from tests.fakes.scripted import Step
from tests.turns.talk import Talk, talking
from wsserver.engine.model import Finished, Text

INTERVAL_SECONDS = 8.0
SCRIPT: list[Step] = [[Text("one ")], 1.0, [Text("two ")], 1.0, [Text("three")], 1.0]


async def has(talk: Talk, *, head: int, stored: int) -> None:
    """Checks a moment after something came, and stays until the next comes."""
    await anyio.sleep(0.1)
    log = talk.conversation.log
    assert (log.head, log.stored) == (head, stored)
    await anyio.sleep(0.9)


async def begun(talk: Talk) -> int:
    """Lets a turn say all but its end, which comes a moment later; returns its number."""
    await anyio.sleep(1.0)
    turn = talk.send().turn or 0
    await has(talk, head=turn + 1, stored=turn + 1)
    await has(talk, head=turn + 2, stored=turn + 1)
    await has(talk, head=turn + 3, stored=turn + 1)
    return turn


async def test_a_model_call_and_the_first_token_wait_for_no_company() -> None:
    script = [*SCRIPT, [Finished(reason="stop")]]
    async with talking(script, interval_seconds=INTERVAL_SECONDS) as talk:
        turn = await begun(talk)
        await has(talk, head=turn + 5, stored=turn + 1)
        assert talk.conversation.turn is None, "it has ended"
        await anyio.sleep(INTERVAL_SECONDS)
        assert talk.conversation.log.clean, "text and end came after the interval"


async def test_the_end_that_somebody_wanted_waits_for_no_company() -> None:
    script = [*SCRIPT, 1000.0]
    async with talking(script, interval_seconds=INTERVAL_SECONDS) as talk:
        await begun(talk)
        talk.interrupt()
        await anyio.sleep(0.1)
        assert talk.conversation.turn is None
        assert talk.conversation.log.clean
