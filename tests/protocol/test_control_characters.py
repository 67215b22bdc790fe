"""What reaches a terminal moves nothing in it, on either side."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.control_characters import without_controls
from wsserver.operations.printable import printable

OVERRIDES = "\u202a\u202b\u202c\u202d\u202e"
ISOLATES = "\u2066\u2067\u2068\u2069"
KEPT = "\n\t"


@pytest.mark.parametrize(
    "harm", ["\x1b", "\r", "\x07", "\x7f", "\x9b", *OVERRIDES, *ISOLATES]
)
def test_what_could_harm_a_terminal_is_dropped_or_marked(harm: str) -> None:
    assert without_controls(f"a{harm}b") == "ab"
    assert printable(f"a{harm}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_an_isolate_goes_though_its_end_is_in_the_next_piece() -> None:
    pieces = ["see \u2067", "abc", "\u2069 there"]
    assert "".join(map(without_controls, pieces)) == "see abc there"


@pytest.mark.parametrize(
    "text",
    [
        "שלום (hello)\u200f!",
        "\u061cשנת 123\u200e.",
        "👩\u200d💻",
        "two\n\tlines",
        "e\u0301",
    ],
)
def test_text_that_people_write_stays_as_it_is(text: str) -> None:
    assert without_controls(text) == printable(text) == text


@given(st.text())
def test_no_control_character_and_no_direction_that_has_to_end_is_left(
    text: str,
) -> None:
    left = without_controls(text)
    for character in left:
        assert character in KEPT or unicodedata.category(character) != "Cc"
        kind = unicodedata.bidirectional(character)
        assert kind not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }
    assert without_controls(left) == left
