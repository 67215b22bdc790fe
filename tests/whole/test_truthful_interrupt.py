"""What the model is told after an interrupt is what was seen, to the byte.

Through real sockets and a strict upstream, which refuses a history that is not valid.
"""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from tests.fakes.replies import streamed, text_events
from tests.fakes.upstream import Reply
from tests.fakes.wire import Wire
from tests.whole.case import Case, begin, said, shown

EXAMPLES = 60
PIECES = [
    "a", " word", "\n", "  ", '"', "\\", "é", "e\u0301", "日本", "😀", "👩\u200d👧", "🇩🇪",
    "\u2028", "क्षि", "</script>", "\x00", "the quick brown fox ",
]  # fmt: skip


def answer(*pieces: str, seconds: float = 0.0, ends: bool) -> Reply:
    """An answer that ends after its last piece, or then says nothing more."""
    events = text_events(*pieces)
    if ends:
        return streamed(events, between_writes_seconds=seconds)
    return streamed(
        events[: 1 + len(pieces)], between_writes_seconds=seconds, end="stall"
    )


def pieces_by_number(client: Wire, name: str, turn: int) -> dict[int, str]:
    events = client.copies[name].events
    return {
        event["seq"]: event["text"]
        for event in events
        if event["type"] == "delta" and event["turn"] == turn
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize("first", range(0, EXAMPLES, 20))
async def test_the_next_prompt_holds_exactly_the_prefix_that_was_seen(
    case: Case, first: int, record_property: Callable[[str, object], None]
) -> None:
    kept: Counter[str] = Counter()
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        texts = chance.choices(PIECES, k=chance.randint(1, 30))
        said_so_far = chance.randint(1, len(texts))
        case.script(
            answer(*texts, seconds=chance.choice([0.0, 0.001]), ends=False),
            answer("fine", ends=True),
        )
        name = case.name()
        async with case.client() as client, case.client() as other:
            # The other one tells which number has which text.
            await other.open(name, view="frames")
            await client.open(
                name,
                view=chance.choice(["merged", "frames"]),
                max_delay_ms=chance.choice([None, 0, 20]),
            )
            turn = await begin(client, name)
            text = "".join(texts[:said_so_far])
            await shown(other, name, turn, text)
            seen = chance.randint(turn, client.copies[name].last + 3)
            reply = await client.command("interrupt", conversation=name, seen_seq=seen)
            assert (await client.done(name, turn))["status"] == "interrupted"
            await other.done(name, turn)
            by_number = pieces_by_number(other, name, turn)
            through = reply["keep_through"]
            assert through <= seen
            had = "".join(t for seq, t in by_number.items() if seq <= through)
            assert client.copies[name].texts[turn] == had
            client.copies[name].prove()
            again = await client.command("send", conversation=name, content="and?")
            await client.done(name, again["turn"])
        expected = [("assistant", had)] if had else []
        prompt = said(case.requests[-1])
        assert prompt == [("user", "go"), *expected, ("user", "and?")], f"seed {seed}"
        kept["all" if had == "".join(texts) else "some" if had else "nothing"] += 1
    record_property("kept", dict(kept))
    assert kept["some"] > 3, kept
    assert kept["nothing"], kept


@pytest.mark.timeout(60)
async def test_200_interrupts_at_the_last_chunk_leave_one_entry_each(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(200)
    outcomes: Counter[str] = Counter()
    names = [case.name() for _ in range(10)]
    async with case.client() as client:
        for name in names:
            for _ in range(20):
                case.script(answer("one ", "two", ends=chance.random() < 0.7))
                turn = await begin(client, name)
                await shown(client, name, turn, "one two")
                reply = await client.command(
                    "interrupt",
                    conversation=name,
                    turn=turn,
                    seen_seq=client.copies[name].last,
                )
                outcomes[reply["outcome"]] += 1
                await client.done(name, turn)
            case.script(answer("fine", ends=True))
            turn = await begin(client, name)
            await client.done(name, turn)
            turns = [("user", "go"), ("assistant", "one two")] * 20
            assert said(case.requests[-1]) == [*turns, ("user", "go")]
    record_property("outcomes", dict(outcomes))
    assert outcomes["interrupted"] >= 20
    assert outcomes["already_finished"] >= 20
    assert outcomes.total() == 200
