"""Gathered text that comes from the store, and over whole connections."""

from collections.abc import Iterable

import anyio
import pytest

from tests.connections.characters import FAMILY
from tests.connections.gathered import DELAY, TICK, Sent, something_else
from tests.connections.journal import (
    Disk,
    Journal,
    desk,
    numbers,
    settle,
    text,
)
from tests.connections.wire import connected
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider
from wsserver.connections.gathering import (
    LONGEST_SECONDS,
    MOST_BYTES,
    QUIET_SECONDS,
)
from wsserver.connections.viewer import BLOCK_BYTES
from wsserver.engine.model import Text
from wsserver.log.entry import Entry


async def test_text_from_the_store_is_cut_between_characters_too() -> None:
    disk = Disk()
    journal = await Journal(disk).told(*FAMILY * 6000, "x")
    other = await Journal(disk, "other").told("short ", "y")
    journal, other = await journal.forgotten(), await other.forgotten()
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        d.view(other)
        await anyio.sleep(DELAY + QUIET_SECONDS + TICK)
        mine = [e for e in sent.events if e["conversation"] == "c"]
        assert numbers(mine) == list(range(1, journal.log.head + 1))
        family = "".join(FAMILY)
        for frame in mine[:-1]:
            assert not frame["text"].replace(family, "")
            assert len(frame["text"].encode()) < MOST_BYTES + 100
        assert text(sent.events, "other") == "short y"


async def test_where_a_block_from_the_store_ends_in_a_character() -> None:
    journal = await Journal(Disk()).told("a ", "👨")
    await journal.told("\u200d👩" + "b" * BLOCK_BYTES)
    journal = await journal.forgotten()
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        await something_else(journal)
        await settle()
        assert numbers(sent.events) == [1, 2, 3, 4]
        assert sent.texts[-1].startswith("👨\u200d👩b")


async def test_a_trim_that_overtakes_who_gathers_lets_the_client_see_the_gap() -> None:
    disk = Disk()
    journal = await Journal(disk).told("a ", "👨")
    await journal.told("x" * BLOCK_BYTES)
    await journal.told("late ", "r")
    journal = await journal.forgotten()
    async with desk() as d:
        sent = Sent(d)
        first = disk.slow[journal.log.key] = anyio.Event()
        d.view(journal, max_delay_seconds=DELAY)
        await settle()
        second = disk.slow[journal.log.key] = anyio.Event()
        first.set()
        await settle()
        journal.log.trim(3)
        await journal.commit()
        second.set()
        await anyio.sleep(DELAY + TICK)
        assert numbers(sent.events) == [1, 2, 4, 5]


async def test_a_small_window_on_text_from_the_store() -> None:
    disk = Disk()
    journal = await (await Journal(disk).told(*FAMILY * 100, "x")).forgotten()
    async with desk() as d:
        sent = Sent(d)
        view = d.view(journal, max_delay_seconds=DELAY, window_bytes=1024)
        for _ in range(20):
            await settle()
            view.ack(view.position)
        await anyio.sleep(DELAY + QUIET_SECONDS + TICK)
        assert numbers(sent.events) == list(range(1, 702))
        assert not "".join(sent.texts[:-1]).replace("".join(FAMILY), "")
        assert len(disk.reads) < 30


async def test_the_store_is_not_kept_waiting_by_what_is_held() -> None:
    disk = Disk()
    journal = await Journal(disk).told("a ", "👨")
    other = await Journal(disk, "other").told("short ", "y")
    journal, other = await journal.forgotten(), await other.forgotten()
    async with desk() as d:
        d.view(journal, max_delay_seconds=10.0)
        await settle()
        d.view(other)
        await settle()
        got = d.got()
        assert (numbers(got), text(got, "other")) == ([1], "short y")
        await journal.told("\u200d👩", "!")
        await settle()
        assert numbers(d.got()) == [2, 3]


async def test_a_view_that_did_not_ask_never_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = Journal(Disk())
    async with desk() as d:

        def no_clock() -> float:
            raise AssertionError("it looks at the clock")

        monkeypatch.setattr(d.alarms, "now", no_clock)
        d.view(journal, window_bytes=5000)
        await journal.told("a", "b")
        await settle()
        assert text(d.got()) == "ab"


async def test_the_writer_sleeps_while_text_only_adds_to_what_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = Journal(Disk())
    async with desk() as d:
        d.view(journal, max_delay_seconds=10.0)
        await journal.told("a")
        await settle()
        woken: list[object] = []
        call_soon = d.wire.call_soon
        monkeypatch.setattr(
            d.wire, "call_soon", lambda call: (woken.append(call), call_soon(call))
        )
        for letter in "bcdefg":
            await journal.told(letter)
            await settle()
        assert not woken
        journal.log.delete()
        await settle()
        assert woken, "and wakes for anything else"


async def test_an_interrupt_keeps_what_was_sent_and_nothing_that_was_held() -> None:
    script = [[Text("one ")], [Text("two ")], [Text("👨")], [Text("\u200d👩")], 1000.0]
    async with rig(ScriptedProvider(script)) as r, connected(r) as c:
        await c.ask("open", conversation="c", max_delay_ms=100)
        c.say("send", id="s", conversation="c", content="go")
        delta = await c.frame("delta")
        assert delta["text"] == "one two "
        reply = await c.ask("interrupt", conversation="c")
        assert reply["keep_through"] == delta["seq"]
        frames = []
        while not frames or frames[-1]["type"] != "done":
            frames.append(await c.frame())
        assert [f["type"] for f in frames] == ["skip", "cut", "usage", "done"]
        assert frames[-1]["text"]["bytes"] == len("one two ")


async def test_a_client_that_comes_back_from_a_held_position_misses_nothing() -> None:
    script = [[Text("one ")], [Text("👨")], 5.0, [Text("\u200d👩")], 5.0, [Text("!")]]
    async with rig(ScriptedProvider(script)) as r:
        async with connected(r) as c:
            opened = await c.ask("open", conversation="c", max_delay_ms=50)
            c.say("send", id="s", conversation="c", content="go")
            first = await c.frame("delta")
            assert first["text"] == "one "
        async with connected(r, name="conn2") as c:
            await c.ask(
                "open", conversation="c", after=first["seq"], epoch=opened["epoch"]
            )
            second = await c.frame("delta")
            assert (second["seq"], second["text"]) == (first["seq"] + 1, "👨")


class Lacking(Disk):
    """Has lost rows: those that hold numbers of `lost`."""

    def __init__(self, lost: Iterable[int]) -> None:
        super().__init__()
        self.lost = frozenset(lost)

    async def read(self, key: str, after: int, max_bytes: int) -> list[Entry]:
        rows = await super().read(key, after, max_bytes)
        assert len(self.reads) < 100, "it asks again and again"
        return [row for row in rows if row.seq not in self.lost]


@pytest.mark.parametrize("delay", [None, DELAY])
@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ((1, 2, 3, 4), []),
        ((3, 4), [1, 2]),
        ((4,), [1, 2, 3]),
    ],
)
async def test_a_store_that_lacks_rows_is_not_asked_for_them_for_ever(
    lost: tuple[int, ...], told: list[int], delay: float | None
) -> None:
    disk = Lacking(lost)
    journal = Journal(disk)
    for piece in ("a ", "b ", "👨", "c "):
        await journal.told(piece)
    journal = await journal.forgotten()
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=delay)
        await anyio.sleep(DELAY + LONGEST_SECONDS + QUIET_SECONDS)
        assert numbers(sent.events) == told
        asked = len(disk.reads)
        assert asked <= 3
        await anyio.sleep(100)
        assert len(disk.reads) == asked
