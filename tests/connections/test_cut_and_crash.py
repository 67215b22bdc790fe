"""A crash that takes a cut back: a client's copy is what the log has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec import convert

from protocol.events import LogEvent
from protocol.fold import ConversationView
from tests.connections.journal import Disk, Journal, desk, numbers, settle
from tests.connections.wire import Client, connected
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says

WINDOW = 1024
SEEN, UNSEEN = "a" * 2 * WINDOW, "unseen"
SEEN_SEQ = 4


class Copy:
    """What a client shows of the conversation, and the cursor to come back with."""

    def __init__(self) -> None:
        self.view = ConversationView()
        self.epoch = ""

    def take(self, frames: list[dict[str, Any]]) -> None:
        for frame in frames:
            self.epoch = frame.get("epoch", self.epoch)
            if "seq" in frame and frame["type"] not in ("reply", "caught_up"):
                self.view.apply(convert(frame, LogEvent))

    @property
    def text(self) -> str:
        (turn,) = self.view.turns.values()
        return turn.text


async def frames(client: Client, *until: str) -> list[dict[str, Any]]:
    """Returns what comes up to a frame of a type, with it; else all that is there."""
    await settle()
    found: list[dict[str, Any]] = []
    while client.wire.frames or (until and found[-1]["type"] not in until):
        found.append(await client.frame())
    return found


@asynccontextmanager
async def killed(provider: ScriptedProvider, store: FaultyStore) -> AsyncGenerator[Any]:
    """Runs a server whose store gets nothing more once the test has closed its gate."""
    async with rig(provider, store) as r:
        try:
            yield r
        finally:
            store.failing = True
            store.gate.set()
    store.failing = False


@pytest.mark.parametrize(
    ("outcome", "members"),
    [
        ("already_finished", {"seen_seq": SEEN_SEQ}),
        ("interrupted", {"seen_seq": SEEN_SEQ}),
        ("interrupted", {}),
        ("interrupted", {"keep": "none"}),
    ],
)
async def test_a_client_comes_back_to_all_that_the_log_has(
    outcome: str, members: dict[str, Any]
) -> None:
    store, copy, more = FaultyStore(), Copy(), anyio.Event()
    script = [*says(SEEN)[:-1], more, *says(UNSEEN)]
    if outcome == "interrupted":
        script[-1] = anyio.Event()
    async with (
        killed(ScriptedProvider(script), store) as r,
        connected(r) as client,
    ):
        client.say("open", id="o", conversation="c", config={}, window_bytes=WINDOW)
        client.say("send", id="s", conversation="c", content="hi")
        copy.take(await frames(client, "delta"))
        more.set()
        await settle()
        await r.committer.flush()
        store.gate = anyio.Event()
        reply = await client.ask("interrupt", conversation="c", **members)
        assert (reply["outcome"], reply["stored"]) == (outcome, False)
        client.say("ack", conversation="c", seq=copy.view.last)
        copy.take(await frames(client))
    async with rig(ScriptedProvider([]), store) as r, connected(r) as client:
        cursor = {"epoch": copy.epoch, "after": copy.view.last}
        client.say("open", id="o", conversation="c", **cursor)
        copy.take(await frames(client))
        other = Copy()
        client.say("open", id="p", conversation="c")
        other.take(await frames(client))
    assert copy.text == other.text == SEEN + UNSEEN
    assert copy.view == other.view


async def test_what_came_before_the_turn_is_not_held_up_by_its_cut() -> None:
    journal = await Journal(Disk()).told("a", "b", turn=1)
    async with desk() as d:
        d.fill()
        await settle()
        view = d.view(journal)
        await journal.told("c", turn=3)
        journal.say("d", turn=3)
        view.mute(3)
        d.wire.flow()
        await settle()
        assert numbers(f for f in d.got() if f["type"] != "filler") == [1, 2, 3]
        assert not view.due
        await journal.commit()
        await settle()
        (skip,) = [f for f in d.got() if f["type"] != "caught_up"]
        assert (skip["type"], skip["seq"]) == ("skip", 4)


async def test_what_waits_for_a_cut_does_not_keep_the_store_from_others() -> None:
    disk = Disk()
    journal = await (await Journal(disk).told("a", "b")).forgotten()
    other = await (await Journal(disk, "other").told("c")).forgotten()
    async with desk() as d:
        view = d.view(journal)
        journal.say("d")
        view.mute(0)
        await settle()
        d.view(other)
        await settle()
        assert numbers(d.got(), "other") == [1]
        await journal.commit()
        await settle()
        assert numbers(d.got()) == [1, 2, 3]
