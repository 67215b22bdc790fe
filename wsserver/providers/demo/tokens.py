"""Tokens of the demo models: a simple stand-in for a tokeniser.

A token is a run of at most eight letters, of at most three digits or of at
most two Han characters, one other character, or a run of spaces or of line
feeds; a single space sticks to the token after it. The tokens of a text joined
are the text. A code point is never cut, but what a reader takes for one
character may be: a flag is two tokens, a family of four is seven.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from wsserver.engine.model import Text

TOKENS_PER_MESSAGE = 4
CHARACTERS_PER_INPUT_TOKEN = 4

_TOKEN = re.compile(
    r" ?(?:[A-Za-z\u00c0-\u024f]{1,8}|[0-9]{1,3}|[\u4e00-\u9fff]{1,2}|[^\s])"
    r"| +|\n+|.",
    re.DOTALL,
)
_WORD = re.compile(r"\s*\S+|\s+")


def split_tokens(text: str) -> list[str]:
    """Cuts a text into the tokens that this module defines."""
    return _TOKEN.findall(text)


def split_words(text: str) -> list[str]:
    """Cuts a text into words, each with the space before it."""
    return _WORD.findall(text)


def text_events(text: str) -> tuple[Text, ...]:
    """Returns one event for each token of `text`."""
    return tuple(map(Text, split_tokens(text)))


@lru_cache(maxsize=64)
def fixed_text_events(text: str) -> tuple[Text, ...]:
    """Does what `text_events` does, and keeps the events: for our own texts."""
    return text_events(text)


def count_input_tokens(messages: Sequence[dict[str, Any]]) -> int:
    """Counts a prompt: four a message and one for each four characters begun.

    Characters are those of the messages' texts, all parts of one message and the
    arguments of its tool calls together.
    """
    return sum(
        TOKENS_PER_MESSAGE
        + -(-sum(map(len, _texts(message))) // CHARACTERS_PER_INPUT_TOKEN)
        for message in messages
    )


def message_text(message: dict[str, Any]) -> str:
    """Returns the text of a chat message, whatever shape its content has."""
    return "".join(_content_texts(message.get("content")))


def _texts(message: dict[str, Any]) -> Iterator[str]:
    yield from _content_texts(message.get("content"))
    for call in message.get("tool_calls") or ():
        yield call["function"]["arguments"]


def _content_texts(content: Any) -> Iterable[str]:
    match content:
        case str():
            return (content,)
        case [*parts]:
            return [text for part in parts if isinstance(text := part.get("text"), str)]
        case _:
            return ()
