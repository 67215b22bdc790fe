"""Forks of random conversations: a model is told there what it was told here."""

from random import Random
from typing import Any

import pytest

from protocol.events import DoneEvent, StartEvent
from tests.turns.random_model import RandomProvider
from tests.turns.talk import Talk, until
from tests.turns.test_simulation import random_session
from wsserver.engine.prompt import PromptFold
from wsserver.log.reading import read_whole

FORKS = 4


@pytest.mark.parametrize("seed", range(8))
async def test_a_fork_tells_what_was_told(seed: int) -> None:
    chance = Random(seed)
    provider = RandomProvider(chance)
    async with random_session(chance, provider) as session:
        for _ in range(40):
            await session.step()
        # While messages wait, and some turn may run.
        session.store.gate.set()
        session.store.failing = False
        await until(lambda: not session.talk.rig.committer.stalled)
        await session.find()
        await check(session.talk, chance)
        await session.wind_up()
        await check(session.talk, chance)


async def check(talk: Talk, chance: Random) -> None:
    """Forks at the ends of some turns, and looks at what a model would be told."""
    log = await talk.log()
    starts = {event.turn: event for event in log if isinstance(event, StartEvent)}
    ended = [event.turn for event in log if isinstance(event, DoneEvent)]
    asked = {request.request_id: request for request in talk.provider.requests}
    for turn in chance.sample(ended, min(FORKS, len(ended))):
        reply = await talk.fork(turn)
        fork = await talk.rig.conversation(reply.conversation or "")
        fold = PromptFold()
        fold.add(await read_whole(fork.log))
        told = fold.messages(None, None)
        last = asked.get(starts[turn].request_id)
        if last is None:  # it was taken back before any model was asked
            continue
        assert users(told) == users(last.messages)
        seen = [message for message in last.messages if message["role"] == "tool"]
        assert [m for m in told if m["role"] == "tool"][: len(seen)] == seen


def users(messages: Any) -> list[Any]:
    return [message["content"] for message in messages if message["role"] == "user"]
