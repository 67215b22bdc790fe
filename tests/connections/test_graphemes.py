"""Where text may be cut, against looking at all of it from its beginning."""

from itertools import accumulate
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from tests.connections.characters import FAMILY, FLAGS, SYLLABLE, pieces, starts
from wsserver.connections import graphemes
from wsserver.connections.graphemes import cluster_start, last_cut, looks_whole
from wsserver.log.entry import Entry, compact, text_entry


def run(texts: list[str], joined: int | None = None) -> list[Entry]:
    """Returns a run as a log holds it, of which the first numbers are one entry."""
    entries = [text_entry("delta", n, 1, text) for n, text in enumerate(texts, 1)]
    return compact(entries[:joined], max_bytes=2**40) + (
        [] if joined is None else entries[joined:]
    )


@given(st.lists(pieces, min_size=1, max_size=12).map("".join), st.data())
def test_the_cluster_around_an_offset(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(text)))
    begins = starts(text)
    if at == len(text):
        begins.discard(at)
    assert cluster_start(text, at) == max(start for start in begins if start <= at)


@pytest.mark.parametrize(
    "text", ["word", "end.", "42", "你", "です", "한국", "Ж", "مرحبا", "` ", "**", "\n"]
)
def test_after_text_like_this_nobody_waits(text: str) -> None:
    assert looks_whole(text)


@pytest.mark.parametrize(
    "one", [FAMILY, FLAGS[:2], SYLLABLE, ["👍", "🏽"], ["❤", "\ufe0f"]]
)
def test_what_people_write_in_parts_does_not_look_whole(one: list[str]) -> None:
    for known in accumulate(one):
        assert not looks_whole(f"text {known}")


@given(st.text(min_size=1, max_size=12), st.data())
def test_the_cluster_around_an_offset_of_any_text(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(text)))
    assert cluster_start(text, at) == max(s for s in starts(text) if s <= at)


def naive_cut(texts: list[str], max_bytes: int) -> int | None:
    begins = starts("".join(texts))
    ends = list(accumulate(map(len, texts)))
    sizes = list(accumulate(len(text_entry("delta", 1, 1, t).body) for t in texts))
    cuts = [n for n in range(1, len(texts)) if ends[n - 1] in begins]
    fit = [n for n in cuts if sizes[n - 1] <= max_bytes]
    beyond = [n for n in cuts if sizes[n - 1] > max_bytes]
    return max(fit) if fit else min(beyond, default=None)


ascii_and_more = st.text('aZ ~!\\"\r\n\t\x00\x7f\u0301\u200d\u0600é你👨', min_size=1)


@given(
    st.lists(pieces | ascii_and_more, min_size=1, max_size=30),
    st.integers(1, 200),
    st.none() | st.integers(0, 30),
)
def test_a_run_is_cut_as_late_as_it_may_be(
    texts: list[str], max_bytes: int, joined: int | None
) -> None:
    assert last_cut(run(texts, joined), max_bytes) == naive_cut(texts, max_bytes)


@pytest.mark.parametrize("texts", [FAMILY, FLAGS[:2], SYLLABLE, ["e", "\u0301"], ["a"]])
def test_one_character_is_not_cut(texts: list[str]) -> None:
    assert last_cut(run(texts), 10**6) is None
    assert last_cut(run([*texts, "x"]), 10**6) == len(texts)
    assert last_cut(run([*texts, "x"]), 1) == len(texts), "whole, though too long"


def test_a_long_text_is_cut_without_looking_at_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def counted(text: str, at: int) -> Any:
        nonlocal looks
        looks += 1
        return regex.match(r"\X", text, pos=at)

    monkeypatch.setattr(graphemes, "_cluster", counted)
    for word in ("word ", "你好", "नमस्ते "):
        assert last_cut(run([word] * 3000), 10**6) == 2999
    assert looks < 30
