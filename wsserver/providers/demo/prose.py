"""The long text: numbered sections, as many as are asked for, no two alike."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, islice

from wsserver.engine.model import Text
from wsserver.providers.demo.tokens import split_tokens

LONG_TOKENS = 5000
FAST_TOKENS = 500

VARIANTS = 4
"""Few, so that a thousand streams share the texts of four."""

_TITLES = (
    "The log",
    "A cursor is a position",
    "What waiting means",
    "On being slow",
    "Numbers without gaps",
    "The cost of a wake-up",
    "Stopping in time",
    "Coming back",
    "Who owns a task",
    "Stored before seen",
    "A turn is a machine",
)
_SENTENCES = (
    "A log only grows, and what is in it never changes.",
    "Whoever reads it needs to remember one number.",
    "That number is the whole of a subscription; everything else can be worked out.",
    "When the network fails, the reader comes back and says how far it got.",
    "Nothing is sent twice, because nothing was forgotten.",
    "A slow reader gets larger pieces, not a longer queue.",
    "The writer does not know who is reading, or whether anybody is.",
    "To stop is a message like any other, and it goes the same way.",
    "What was shown stays; what was not shown may be dropped without a trace.",
    "A wake-up carries nothing, so losing one costs a moment and no content.",
    "Several events that wait together travel together.",
    "The end of a turn is one event, and it comes exactly once.",
    "Before anything is seen it is stored, so a crash can take back nothing.",
    "One clock is enough, provided that nobody asks it more often than needed.",
    "An identifier that is repeated is a question asked again, not a new one.",
    "If two things happen at once, the log says which of them was first.",
    "The reader's screen is a fold over what it has read.",
    "So is the prompt, which is why both always agree.",
    "There is no hand-over from the past to the present, only the next event.",
    "A limit that is written down is a promise; one that is not is an accident.",
    "Every task has an owner, and ends no later than it does.",
    "What can be decided without waiting should be decided first.",
    "It is easier to keep order than to restore it.",
)
_PER_SECTION = 7
_STRIDE = 5


@lru_cache(maxsize=32)
def prose_events(tokens: int, variant: int) -> tuple[Text, ...]:
    """Returns prose of exactly `tokens` tokens.

    Args:
        tokens: Its length; the last section ends in mid-sentence if need be.
        variant: One of `VARIANTS` texts.
    """
    return tuple(map(Text, islice(_tokens(variant), tokens)))


def _tokens(variant: int) -> Iterator[str]:
    """Yields the tokens of a text without an end."""
    first = variant
    for number in count(1):
        # The stride shares no factor with the number of sentences, so that a section
        # repeats none of them; the number tells sections apart.
        chosen = range(first, first + _PER_SECTION * _STRIDE, _STRIDE)
        sentences = " ".join(_SENTENCES[index % len(_SENTENCES)] for index in chosen)
        title = _TITLES[(number + variant) % len(_TITLES)]
        yield from split_tokens(
            f"## {number}. {title}\n\n{sentences} So much for number {number}.\n\n"
        )
        first = chosen.stop + number
