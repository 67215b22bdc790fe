"""A space has so many conversations in the store, and no more."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from random import Random

import anyio
import pytest

from protocol.commands import Delete
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.turns.talk import VirtualClock, settled, talking
from wsserver.auth.principal import Principal
from wsserver.log.store import Write
from wsserver.turns import stored_counts
from wsserver.turns.errors import CommandError
from wsserver.turns.retention import Retention
from wsserver.turns.services import ConversationLimits

TEAM = Principal(name="ann", space="alice/team")
BRIEF = Retention(seconds=1_000.0)
ids = count()


class Counting(FaultyStore):
    """Notes how often it is asked, and can take its time.

    Attributes:
        asked: The spaces whose conversations were counted.
        slow_seconds: How long the answer takes, once it was counted.
        idle_seconds: The same of which ones are idle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.slow_seconds = 0.0
        self.idle_seconds = 0.0

    async def count(self, space: str) -> int:
        self.asked.append(space)
        found = await super().count(space)
        await anyio.sleep(self.slow_seconds)
        return found

    async def idle(self, before: float, limit: int) -> list[str]:
        found = await super().idle(before, limit)
        await anyio.sleep(self.idle_seconds)
        return found


@asynccontextmanager
async def house(
    stored: int | None, store: Counting | None = None
) -> AsyncGenerator[Rig]:
    limits = ConversationLimits(stored=stored)
    clock = VirtualClock()
    async with rig(
        ScriptedProvider(), store or Counting(), limits, retention=BRIEF, clock=clock
    ) as r:
        yield r


async def make(r: Rig, *names: str, by: Principal = ALICE) -> None:
    for name in names:
        assert (await r.directory.create(by.key(name), None, by))[1]


async def refused(r: Rig, name: str, by: Principal = ALICE) -> str:
    with pytest.raises(CommandError) as caught:
        await r.directory.create(by.key(name), None, by)
    body = caught.value.body
    assert (body.code, body.retryable) == ("too_many_conversations", False)
    await r.committer.flush()
    assert r.directory.loaded(by.key(name)) is None
    assert await r.store.meta(by.key(name)) is None
    return body.message


async def delete(r: Rig, name: str, by: Principal = ALICE) -> None:
    command = Delete(id=f"d{next(ids)}", conversation=name)
    assert (await r.directory.delete(by.key(name), command, by)).reply.ok


async def test_there_are_so_many_and_deleting_one_makes_room_at_once() -> None:
    async with house(3) as r:
        await make(r, "a", "b", "c")
        assert await refused(r, "d") == (
            "3 conversations are stored for these credentials, and 3 is the limit;"
            " delete one first."
        )
        found, made = await r.directory.create(ALICE.key("b"), None, ALICE)
        assert (found.log.conversation, made) == ("b", False), "it is there already"
        await make(r, "d", by=TEAM)  # a space of its own, though its name begins alike
        await delete(r, "a")
        await make(r, "d")
        await refused(r, "a")


async def test_without_a_limit_nobody_counts() -> None:
    async with house(None) as r:
        await make(r, *"abcdef")
        assert isinstance(r.store, Counting)
        assert not r.store.asked


async def test_what_another_process_stored_counts_and_is_counted_once() -> None:
    store = Counting()
    async with house(9, store) as r:
        await make(r, "a", "b", "c")
        await make(r, "x", by=TEAM)
        await r.committer.flush()
    store.asked.clear()
    async with house(4, store) as r:
        await make(r, "d")
        await refused(r, "e")
        await delete(r, "b")
        await make(r, "e")
        assert store.asked == ["alice"]
    async with house(2, store) as r:  # there are more than are allowed by now
        assert "4 conversations are stored" in await refused(r, "f")
        for name in ("a", "c"):
            await delete(r, name)
            await refused(r, "f")
        await delete(r, "d")
        await make(r, "f")


async def test_forks_count_and_one_that_is_sent_again_gets_its_reply() -> None:
    limits = ConversationLimits(stored=2)
    async with talking(says("a"), limits=limits) as talk:
        talk.send()
        await talk.done()
        first = await talk.fork(3, id="f1", new="fork")
        for _ in range(2):
            with pytest.raises(CommandError) as caught:
                await talk.fork(3, id="f2", new="other")
            assert caught.value.body.code == "too_many_conversations"
        again = await talk.fork(3, id="f1", new="fork")
        assert again.conversation == first.conversation
        assert again.duplicate
        assert talk.send(id="one more").ok, "what is there goes on"
        await delete(talk.rig, "fork")
        assert (await talk.fork(3, id="f2", new="other")).ok


async def test_what_retention_drops_makes_room() -> None:
    async with house(2) as r:
        await make(r, "a", "b")
        await refused(r, "c")
        await r.committer.flush()
        await settled()
        await anyio.sleep(2_000.0)
        assert await r.sweep.once() == 2
        await make(r, "c", "d")
        await refused(r, "e")


@pytest.mark.parametrize("before", [True, False])
async def test_what_is_deleted_while_idle_ones_are_sought_goes_once(
    before: bool,
) -> None:
    store = Counting()
    async with house(3, store) as r:
        await make(r, "a", "b", "c")
        await r.committer.flush()
        await settled()
        await anyio.sleep(2_000.0)
        store.idle_seconds = 10.0
        store.gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            if before:
                tasks.start_soon(delete, r, "b")
                await settled()
            tasks.start_soon(r.sweep.once)
            await settled()
            if not before:
                tasks.start_soon(delete, r, "b")
                await settled()
            store.gate.set()
        await make(r, "d", "e", "f")
        await refused(r, "g")


async def test_all_that_come_at_once_are_counted_once() -> None:
    store, made, turned_away = Counting(), [], []
    store.slow_seconds = 1.0

    async def go(r: Rig, name: str) -> None:
        try:
            await r.directory.create(ALICE.key(name), None, ALICE)
            made.append(name)
        except CommandError:
            turned_away.append(name)

    async with house(5, store) as r:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(go, r, f"c{number}")
        assert (len(made), len(turned_away)) == (5, 15)
        assert store.asked == ["alice"]


async def test_a_count_that_failed_is_asked_for_again() -> None:
    store = Counting()
    async with house(1, store) as r:
        store.slow_seconds = 10.0
        with anyio.move_on_after(1.0):
            await make(r, "a")
        store.slow_seconds = 0.0
        await make(r, "a")
        await refused(r, "b")
        assert store.asked == ["alice"] * 2


async def test_what_is_about_to_go_when_the_store_is_asked_does_not_count() -> None:
    store = Counting()
    async with house(3, store) as r:
        await make(r, "a", "b", "c")
        await r.committer.flush()
    async with house(3, store) as r:
        store.gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete, r, "a")
            await settled()
            tasks.start_soon(make, r, "d")
            await settled()
            store.gate.set()
        await refused(r, "e")


async def test_what_goes_while_the_store_is_asked_leaves_room() -> None:
    store = Counting()
    async with house(3, store) as r:
        await make(r, "a", "b", "c")
        await r.committer.flush()
    async with house(3, store) as r:
        store.slow_seconds = 1.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(make, r, "d")
            await settled()
            tasks.start_soon(delete, r, "a")
        await refused(r, "e")


async def test_a_space_whose_number_was_forgotten_is_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_counts, "MOST_SPACES", 2)
    store = Counting()
    async with house(3, store) as r:
        spaces = ("one", "two", "one", "three", "one", "two")
        for number, space in enumerate(spaces):
            name = f"c{number}"
            await make(r, name, by=Principal(name=space, space=space))
            await r.committer.flush()
        assert store.asked == ["one", "two", "three", "two"]
        two = Principal(name="two", space="two")
        await make(r, "x", by=two)
        await refused(r, "y", by=two)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_the_store_has_no_more_and_room_is_used(
    seed: int,
) -> None:
    """A model of the names that there are says which are taken, and which refused."""
    chance, store, limit = Random(seed), Bounded(4), 4
    names: set[str] = set()
    for _ in range(3):  # each a process of its own
        async with house(limit, store) as r:
            for _ in range(30):
                name = f"c{chance.randrange(8)}"
                match chance.choice(["create", "create", "delete", "wait"]):
                    case "create" if name not in names:
                        if len(names) == limit:
                            await refused(r, name)
                        else:
                            await make(r, name)
                            names.add(name)
                    case "delete" if name in names:
                        await delete(r, name)
                        names.remove(name)
                    case "wait":
                        await r.committer.flush()
                        await settled()
                    case _:
                        pass
            await r.committer.flush()
        assert await store.count("alice") == len(names)


class Bounded(Counting):
    """Fails where more is kept than may be."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def commit(self, writes: Sequence[Write], now: float) -> None:
        await super().commit(writes, now)
        assert await self.count("alice") <= self._most
