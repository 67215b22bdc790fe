"""The demo tokeniser loses nothing, and counts as its docstring says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.providers.demo.prose import VARIANTS, prose_events
from wsserver.providers.demo.tokens import (
    count_input_tokens,
    message_text,
    split_tokens,
    split_words,
)


@given(st.text())
def test_tokens_and_words_joined_are_the_text(text: str):
    assert "".join(split_tokens(text)) == text
    assert "".join(split_words(text)) == text
    assert all(split_tokens(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", ["Hello", ",", " world", "!"]),
        ("internationally", ["internat", "ionally"]),
        ("1234", ["123", "4"]),
        ("## A\n\n- b", ["#", "#", " A", "\n\n", "-", " b"]),
        ("流式输出", ["流式", "输出"]),
        ("🇫🇷", ["🇫", "🇷"]),
        ("👨‍👩‍👧", ["👨", "\u200d", "👩", "\u200d", "👧"]),
        ("a\t  b", ["a", "\t", "  ", "b"]),
    ],
)
def test_tokens_are_what_the_docstring_says(text: str, tokens: list[str]):
    assert split_tokens(text) == tokens


def test_input_tokens_are_four_a_message_and_a_quarter_of_the_characters():
    messages = [
        {"role": "system", "content": "12345"},
        {"role": "user", "content": [{"type": "text", "text": "1234"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]
    assert count_input_tokens(messages) == (4 + 2) + (4 + 1) + (4 + 1)


def test_the_text_of_a_message_with_parts_is_that_of_its_text_parts():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "b"},
    ]
    assert message_text({"role": "user", "content": parts}) == "ab"


@given(st.integers(0, 3000), st.integers(0, VARIANTS - 1))
def test_prose_has_exactly_the_tokens_asked_for(tokens: int, variant: int):
    assert len(prose_events(tokens, variant)) == tokens


def test_no_paragraph_of_the_prose_comes_twice():
    text = "".join(event.text for event in prose_events(20_000, 0))
    paragraphs = text.split("\n\n")[:-1]
    assert len(set(paragraphs)) == len(paragraphs) > 200
