"""Which text of a turn stays, and its proof."""

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.story import Story
from wsserver.log.entry import compact
from wsserver.turns.kept_text import cut_through, keep_through, proof

TURN, HEAD = 10, 30


@pytest.mark.parametrize(
    ("keep", "seen", "sent", "through"),
    [
        (None, None, 20, 20),
        (None, 15, 20, 15),
        (None, 25, 20, 20),
        ("seen", 15, 20, 15),
        ("seen", None, 20, 20),
        ("seen", 3, 20, TURN),
        ("sent", 15, 20, 20),
        ("sent", None, 3, TURN),
        ("sent", None, 99, HEAD),
        ("generated", 15, 12, HEAD),
        ("none", 25, 25, TURN),
    ],
)
def test_what_stays(keep: Any, seen: int | None, sent: int, through: int) -> None:
    assert keep_through(keep, seen, turn=TURN, sent=sent, head=HEAD) == through


@given(st.data())
def test_the_proof_is_of_the_text_up_to_a_number_however_it_is_joined(
    data: st.DataObject,
) -> None:
    story = Story()
    texts = st.lists(st.text("aé日🎌\n", min_size=1, max_size=4), max_size=8)
    other = story.ask()
    story.say(*data.draw(texts))
    story.done()
    story.ask()
    pieces: dict[int, str] = {}
    for text in data.draw(texts):
        pieces[story.say(text)] = text
        if data.draw(st.booleans()):
            story.say("hm", kind="reasoning")
    through = data.draw(st.integers(0, story.head + 2))
    begin = data.draw(st.integers(0, story.head))
    entries = story.entries[:begin] + compact(story.entries[begin:])
    kept = "".join(t for seq, t in pieces.items() if seq <= through).encode()
    found = proof(entries, story.turn, through)
    assert (found.bytes, found.crc32) == (len(kept), zlib.crc32(kept))
    assert proof(entries, other, 0).bytes == 0


def test_of_several_cuts_the_shortest_counts() -> None:
    story = Story()
    first = story.ask()
    numbers = [story.say(text) for text in "abc"]
    assert cut_through(story.entries, first) is None
    story.done()
    for number in (numbers[1], numbers[0], numbers[2]):
        story.cut(number)
    second = story.ask()
    story.cut(second)
    assert cut_through(story.entries, first) == numbers[0]
    assert cut_through(story.entries, second) == second
