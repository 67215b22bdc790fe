"""Runs streams through a relay and tells what a token cost while all of them ran."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from tests.bench.clients.chats import Chat, in_waves, open_chat
from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.upstream import finish
from tests.bench.process import Usage
from tests.bench.scenario import KEEPS_UP, FellBehind, Figures, Rig, percentile

ASKS_PER_SECOND = 1000
ASKS_AT_ONCE = 20
START_SECONDS = 12.0
SETTLE_SECONDS = 0.5
END_SECONDS = 10.0
ENDLESS = 1_000_000


class Asker(Protocol):
    """Whoever asks for an answer."""

    def ask(self) -> None:
        """Asks; whose tokens are counted was said before."""
        ...


class Load(Struct, frozen=True, kw_only=True):
    """So many streams at once.

    Attributes:
        streams: How many.
        rate: Tokens per second of each; 0 is as fast as it goes.
        tokens: Of each, where they go as fast as they can.
    """

    streams: int
    rate: float
    tokens: int = 0

    @property
    def model(self) -> str:
        """The model's name that makes the mock upstream stream so."""
        if self.rate:
            # Ended by the mock upstream when it was watched long enough.
            return f"bench:tokens={ENDLESS},rate={self.rate:g},stamp=1"
        return f"bench:tokens={self.tokens},rate=0"


async def through_own_connections(rig: Rig, load: Load) -> Figures:
    """Measures streams that have a connection each."""
    tally = Tally(load.streams, stamped=load.rate > 0)
    row = rig.row

    async def chat(number: int) -> Chat:
        name = f"{rig.run}-{number}"
        return await open_chat(
            row.dialect, rig.relay.port, name, load.model, Answer(tally)
        )

    chats = await in_waves(load.streams, chat)
    try:
        return await measured(rig, load, tally, chats)
    finally:
        for each in chats:
            each.close()


async def warm_up(rig: Rig) -> None:
    """Makes a relay import what it imports late, and compile what it compiles."""
    await through_own_connections(rig, Load(streams=10, rate=0, tokens=200))


async def start(askers: Sequence[Asker], tally: Tally) -> None:
    """Lets all ask, a few at a time, and returns when all streams run.

    Raises:
        FellBehind: Some did not begin in time.
    """
    for number, asker in enumerate(askers, 1):
        asker.ask()
        if number % ASKS_AT_ONCE == 0:
            await asyncio.sleep(ASKS_AT_ONCE / ASKS_PER_SECOND)
    try:
        await asyncio.wait_for(tally.all_started.wait(), START_SECONDS)
    except TimeoutError:
        told = f"{tally.started} of {tally.streams} streams began in time"
        raise FellBehind(told) from None
    await asyncio.sleep(SETTLE_SECONDS)


async def measured(
    rig: Rig, load: Load, tally: Tally, askers: Sequence[Asker]
) -> Figures:
    """Lets `askers` ask, and returns the figures of the tokens in `tally`.

    Raises:
        FellBehind: Not all streams came to their begin or end in time.
    """
    if load.rate:
        return await _paced(rig, load, tally, askers)
    begin = Usage.now(rig.relay, rig.upstream)
    for asker in askers:
        asker.ask()
    expected = load.streams * load.tokens
    try:
        await asyncio.wait_for(tally.all_ended.wait(), 2 * rig.seconds)
        _check_whole(rig, tally, expected)
    except TimeoutError:
        pass
    used = Usage.now(rig.relay, rig.upstream).since(begin)
    return {"delivered": 100 * tally.tokens / expected} | _costs(used, tally.tokens)


async def _paced(
    rig: Rig, load: Load, tally: Tally, askers: Sequence[Asker]
) -> Figures:
    begin = Usage.now(rig.relay, rig.upstream)
    await start(askers, tally)
    tally.delays_us.clear()
    tokens, first = tally.tokens, Usage.now(rig.relay, rig.upstream)
    await asyncio.sleep(rig.seconds)
    used = Usage.now(rig.relay, rig.upstream).since(first)
    tokens, delays = tally.tokens - tokens, [each / 1000 for each in tally.delays_us]
    share = tokens / (tally.streams * load.rate * used.at)
    figures = {"delivered": min(100 * share, 100.0)} | _costs(used, tokens)
    if delays:
        figures |= {"p50": percentile(delays, 0.5), "p99": percentile(delays, 0.99)}
    if share >= KEEPS_UP and rig.row.has_upstream:
        await _end(rig, tally, len(askers))
        whole = Usage.now(rig.relay, rig.upstream).since(begin)
        tokens_cost = figures["us"] * tally.tokens
        figures["turn_us"] = (whole.relay * 1e6 - tokens_cost) / len(askers)
    return figures


async def _end(rig: Rig, tally: Tally, streams: int) -> None:
    """Lets all streams come to their end, and checks that all of them came."""
    sent = await finish(rig.upstream.port)
    try:
        await asyncio.wait_for(tally.all_ended.wait(), END_SECONDS)
    except TimeoutError:
        told = f"{tally.ended} of {tally.streams} streams ended in time"
        raise FellBehind(told) from None
    _check_whole(rig, tally, sent * tally.streams // streams)


def _check_whole(rig: Rig, tally: Tally, expected: int) -> None:
    # Who passes HTTP through may put a chunk's head into the middle of a token.
    split = rig.row.dialect == "sse"
    told = f"{rig.row.name}: {tally.tokens} of {expected} tokens arrived"
    assert tally.tokens == expected or split, told


def _costs(used: Usage, tokens: int) -> Figures:
    tokens = max(tokens, 1)
    return {
        "us": used.relay / tokens * 1e6,
        "client_us": used.client / tokens * 1e6,
        "upstream_us": used.upstream / tokens * 1e6,
        "relay_share": 100 * used.relay / used.at,
        "client_share": 100 * used.client / used.at,
        "upstream_share": 100 * used.upstream / used.at,
        "machine_share": 100 * used.machine / used.at,
        "tokens_per_second": tokens / used.at,
    }
