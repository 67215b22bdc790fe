"""Text that is gathered: whole characters, in time, every number once."""

from itertools import pairwise, product

import anyio
import pytest

from protocol.content import Config
from protocol.events import ConfigEvent
from tests.connections.characters import FAMILY, FLAGS, SYLLABLE
from tests.connections.gathered import DELAY, TICK, Sent, something_else
from tests.connections.journal import (
    Disk,
    Journal,
    desk,
    numbers,
    settle,
    text,
)
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.connections.gathering import LONGEST_SECONDS, MOST_BYTES, QUIET_SECONDS


async def test_text_is_gathered_for_as_long_as_was_asked() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        for n in range(100):
            await journal.told(f"{n} ")
            await anyio.sleep(0.01)
        await anyio.sleep(DELAY)
        assert text(d.got()) == "".join(f"{n} " for n in range(100))
        assert len(sent.texts) <= 1.0 / DELAY + 2
        times = [at for at, frame in sent.frames if "text" in frame]
        assert all(
            DELAY * 7 / 8 - 0.01 <= late - soon <= DELAY + TICK
            for soon, late in pairwise(times[:-1])
        )
        await journal.told("end")
        await something_else(journal)
        assert sent.texts[-1] == "end", "something else came: all may go"


async def test_the_last_character_waits_for_its_own_delay() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        await journal.told("one ", "two ")
        await anyio.sleep(DELAY / 2)
        await journal.told("three")
        await anyio.sleep(DELAY / 2 + TICK)
        assert sent.texts == ["one two "]
        await anyio.sleep(DELAY / 2)
        assert sent.texts == ["one two ", "three"]


async def test_what_may_go_on_is_held_until_more_comes_or_long_enough() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        await journal.told("one ", "👨")
        await anyio.sleep(DELAY + TICK)
        assert sent.texts == ["one "]
        await anyio.sleep(0.3)
        await journal.told("👩")
        await settle()
        assert sent.texts == ["one ", "👨"], "it had waited long enough"
        await anyio.sleep(DELAY + QUIET_SECONDS - TICK)
        assert sent.texts == ["one ", "👨"]
        await anyio.sleep(2 * TICK)
        assert sent.texts == ["one ", "👨", "👩"]


@pytest.mark.parametrize(
    ("one", "delay"),
    [
        *product([FAMILY, FLAGS[:2], SYLLABLE, ["👍", "🏽"]], [0.0, DELAY]),
        (["e", "\u0301"], DELAY),
        (["1", "\ufe0f", "\u20e3"], DELAY),
    ],
)
async def test_a_character_never_shows_in_parts(one: list[str], delay: float) -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=delay)
        for piece in ("x", *one, "y", *one, *one, "z"):
            await journal.told(piece)
            await anyio.sleep(0.15)
        await something_else(journal)
        whole = "".join(one)
        assert "".join(sent.texts) == f"x{whole}y{whole}{whole}z"
        for part in sent.texts:
            assert (
                not part.replace("x", "")
                .replace("y", "")
                .replace("z", "")
                .replace(whole, "")
            )


async def test_without_a_delay_it_goes_as_soon_as_it_is_whole() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=0.0)
        for piece in ("a", "b", *FAMILY, "c", "你"):
            await journal.told(piece)
            await settle()
        assert sent.texts == ["a", "b", "".join(FAMILY), "c", "你"]


async def test_where_a_character_has_no_end_parts_of_it_go_in_bounded_time() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        view = d.view(journal, max_delay_seconds=DELAY)
        for _ in range(200):
            await journal.told("\u0301")
            await anyio.sleep(0.1)
            held = journal.log.stored - view.position
            assert held <= 10 * (DELAY + LONGEST_SECONDS) + 2
        assert len(sent.texts) > 1


async def test_only_text_is_gathered_and_only_the_newest() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=DELAY)
        journal.say("a", "b")
        journal.log.append(ConfigEvent, config=Config())
        journal.say("hidden", kind="tool_delta")
        journal.say("c", "d")
        await journal.commit()
        await settle()
        got = [(e["type"], e["seq"]) for e in sent.events]
        assert got == [("delta", 2), ("config", 3), ("skip", 4)]
        await anyio.sleep(DELAY + TICK)
        assert sent.texts == ["ab", "c", "d"]


@pytest.mark.parametrize("forgotten", [False, True])
async def test_what_is_no_text_keeps_to_the_window(forgotten: bool) -> None:
    journal = Journal(Disk())
    for _ in range(20):
        journal.log.append(ConfigEvent, config=Config(instructions="x" * 400))
    await journal.commit()
    if forgotten:
        journal = await journal.forgotten()
    async with desk() as d:
        view = d.view(journal, max_delay_seconds=DELAY, window_bytes=1024)
        await settle()
        assert numbers(d.got()) == [1, 2, 3]
        view.ack(3)
        await settle()
        assert numbers(d.got()) == [4, 5, 6]


async def test_very_much_text_is_not_gathered() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        sent = Sent(d)
        d.view(journal, max_delay_seconds=10.0)
        for _ in range(20):
            await journal.told("x" * 1000)
            await settle()
        assert sum(map(len, sent.texts)) >= MOST_BYTES - 1000


async def test_caught_up_does_not_wait_for_what_is_held() -> None:
    journal = await Journal(Disk()).told("Hi ", "👨", "\u200d👩")
    async with desk() as d:
        sent = Sent(d)
        view = d.view(journal, max_delay_seconds=DELAY)
        await settle()
        assert sent.texts == ["Hi "], "what is old is not gathered any more"
        assert d.got()[-1] == {"type": "caught_up", "conversation": "c", "seq": 1}
        await journal.told("\u200d👧", ".")
        await settle()
        assert sent.texts == ["Hi ", "👨\u200d👩\u200d👧"]
        assert view.sent_through() == 4


@pytest.mark.parametrize("looked_before", [False, True])
async def test_a_character_across_the_head_of_a_replay_is_not_cut_there(
    looked_before: bool,
) -> None:
    journal = await Journal(Disk()).told("Hi ", "👨")
    async with desk() as d:
        if not looked_before:
            d.fill()
            await settle()
        d.view(journal, max_delay_seconds=DELAY)
        await settle()
        journal.say("\u200d👩", " there")
        await something_else(journal)
        d.wire.flow()
        await settle()
        frames = d.got()
        texts = [frame["text"] for frame in frames if frame["type"] == "delta"]
        parts = ["Hi ", "👨\u200d👩 there"]
        assert texts == (parts if looked_before else ["".join(parts)])
        assert numbers(frames) == [1, 2, 3, 4, 5]
        [caught_up] = [f for f in frames if f["type"] == "caught_up"]
        assert caught_up["seq"] == (1 if looked_before else 4)


async def test_what_was_sent_is_what_the_view_says_was_sent() -> None:
    journal = await Journal(Disk()).told("one ", "two ", "👨")
    async with desk() as d:
        view = d.view(journal, max_delay_seconds=DELAY)
        await settle()
        assert (numbers(d.got()), view.sent_through()) == ([1, 2], 2)
        view.mute(1)
        await journal.told("four ")
        await settle()
        frames = d.got()
        assert frames == [{"type": "skip", "conversation": "c", "first": 3, "seq": 4}]
        assert view.sent_through() == 4


async def test_what_has_to_be_sent_is_not_held() -> None:
    journal = await Journal(Disk()).told("one ", "👨")
    async with desk() as d:
        view = d.view(journal, max_delay_seconds=DELAY)
        await settle()
        d.got()
        await journal.told("\u200d", "👩")
        view.flush(3)
        await settle()
        assert numbers(d.got()) == [2, 3]
        await anyio.sleep(DELAY + QUIET_SECONDS + TICK)
        assert numbers(d.got()) == [4]


async def test_each_number_by_itself_comes_with_the_rest_of_its_character() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        d.view(journal, max_delay_seconds=0.0, frames=True)
        got: list[list[int]] = []
        for piece in ("a", "👨", "\u200d", "👩", "b", "c"):
            await journal.told(piece)
            await settle()
            got.append(numbers(d.got()))
        assert got == [[1], [], [], [], [2, 3, 4, 5], [6]]


async def test_a_window_that_is_smaller_than_a_character_lets_it_through() -> None:
    journal = await Journal(Disk()).told(*[*FAMILY, "x"] * 60, " ")
    async with desk() as d:
        sent = Sent(d)
        view = d.view(journal, max_delay_seconds=DELAY, window_bytes=1024)
        for _ in range(40):
            await anyio.sleep(2 * DELAY)
            view.ack(view.position)
        await anyio.sleep(DELAY + QUIET_SECONDS + TICK)
        assert numbers(sent.events) == list(range(1, journal.log.head + 1))
        assert set("".join(sent.texts).split("x")) == {"".join(FAMILY), " "}
        for part in sent.texts:
            assert not part.replace("".join(FAMILY), "").strip("x ")
            assert len(part.encode()) < 1024 + 100
