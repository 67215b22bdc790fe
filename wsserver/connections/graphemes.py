"""Where text may be cut: between extended grapheme clusters, what people call characters.

A family emoji, a flag, a letter with its marks or a Devanagari syllable is one cluster
of several code points (Unicode Standard Annex 29). Pure.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence

import orjson
import regex

from wsserver.log.entry import Entry, compact
from wsserver.log.tail import ALL_BYTES

_cluster = regex.compile(r"\X").match

# Here a cluster begins, whatever stands before it: looking for clusters need not go
# back further. Only a prepended mark joins with a letter like these.
_begins = regex.compile(
    r"(?r)(?<=\P{Grapheme_Cluster_Break=Prepend})(?=[ -~\u4E00-\u9FFF])"
).search

# Numbers, punctuation, and letters of scripts that seldom add marks to them: what
# follows begins another character as a rule.
_WHOLE = "".join(
    f"\\p{{{name}}}"
    for name in (
        "N", "P", "Z", "Sm", "Sc", "Sk", "Latin", "Greek", "Cyrillic", "Armenian",
        "Georgian", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana",
        "Grapheme_Cluster_Break=LV", "Grapheme_Cluster_Break=LVT",
    )
)  # fmt: skip
_PARTS = "".join(
    f"\\p{{{name}}}"
    for name in (
        "M", "Extended_Pictographic", "Emoji_Modifier",
        "Grapheme_Cluster_Break=Prepend",
    )
)  # fmt: skip
_whole = regex.compile(rf"(?V1)[[\n\t{_WHOLE}]--[{_PARTS}]]\Z").search


def looks_whole(text: str) -> bool:
    """Says whether the last character of a text is one that rarely has more parts.

    Then no emoji, flag or syllable goes on after it. Still a mark may follow a letter,
    or make a digit an emoji.
    """
    return _whole(text, max(0, len(text) - 1)) is not None


def cluster_start(text: str, at: int) -> int:
    """Returns where the cluster begins that offset `at` is inside of.

    That is `at` itself where a cluster begins there. What follows the text is not
    known, so its end is inside of its last cluster. Offsets count code points.
    """
    assert 0 < at <= len(text), "there is something before the offset"
    known = _begins(text, 0, min(at + 1, len(text)))
    start = 0 if known is None else known.start()
    while True:
        found = _cluster(text, start)
        assert found is not None, "every text begins with a cluster"
        end = found.end()
        if end > at or end == len(text):
            return start
        start = end


def last_cut(run: Sequence[Entry], max_bytes: int) -> int | None:
    """Returns the number after which a run of text is best cut.

    That is the last one that ends between two clusters and within `max_bytes`; where
    there is none, the first one that ends between two clusters; None where none does.
    The run's own last number is not one of them: what follows may belong to its last
    cluster.

    Args:
        run: Neighbours of one text kind, turn and call.
        max_bytes: How long the encoded text before the cut should be.
    """
    if len(run) > 1 and _parts(run[-2], run[-1]):
        before = run[-2].seq
        if sum([len(entry.body) for entry in run]) - len(run[-1].body) <= max_bytes:
            return before
    (entry,) = compact(run, max_bytes=ALL_BYTES)
    if entry.first == entry.seq:
        return None
    ends = struct.unpack(f"<{len(entry.ends) // 4}I", entry.ends)
    text = entry.text()
    plain = len(text) == len(entry.body)  # then bytes are code points
    last = len(ends) - 1
    place = most = min(max(bisect_right(ends, max_bytes) - 1, 0), last)
    while place >= 0:
        at = ends[place] if plain else _length(entry.body[: ends[place]])
        start = cluster_start(text, at) if at else 0
        if start == at:
            return entry.first + place
        size = start if plain else _encoded(text[:start])
        place = bisect_right(ends, size) - 1
    for place in range(most + 1, last + 1):
        at = ends[place] if plain else _length(entry.body[: ends[place]])
        if at and cluster_start(text, at) == at:
            return entry.first + place
    return None


def _parts(before: Entry, last: Entry) -> bool:
    """Says whether the last number surely begins a cluster, by two bytes alone.

    A printable ASCII character goes on with nothing that ends in ASCII; an escaped
    line feed does with a carriage return.
    """
    if last.first != last.seq or not before.body or not last.body:
        return False
    first = last.body[0]
    return 0x20 <= first < 0x7F and first != 0x5C and before.body[-1] < 0x80


def _length(body: bytes) -> int:
    return len(orjson.loads(b'"%b"' % body))


def _encoded(text: str) -> int:
    return len(orjson.dumps(text)) - 2
