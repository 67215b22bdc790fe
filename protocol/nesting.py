"""How lists and objects of a JSON text stand in each other, without decoding it.

Each function takes time that grows with the length of the text and with nothing
else: what strangers send is measured with it. The text is taken for valid JSON.
"""

import re
from itertools import accumulate, repeat
from operator import add, mul, sub

# A bracket that opens is a 1, one that closes a 0. Eight at a time: by how much
# they go up in all, and how high they get on the way.
_AS_BITS = bytes.maketrans(b"{}[]", b"1010")
_MARK = "\1"
_OTHER = bytes(byte for byte in range(256) if byte not in b"[]{}\1")
_CLIMB = bytes((2 * eight.bit_count() - 8) % 256 for eight in range(256))
_PEAK = tuple(
    max(accumulate(1 if eight >> bit & 1 else -1 for bit in range(7, -1, -1)))
    for eight in range(256)
)

MAX_DEPTH = 64
"""How deep lists and objects of a frame may stand in each other, the frame
included: more than a tool's schema needs, less than any JSON library takes."""

_STEP = bytes.maketrans(b"10", b"\x01\xff")

_TYPE = re.compile(r'"type"[ \t\r\n]*:')

# After a backslash it is no key but the end of one.
_TEXT_MEMBER = re.compile(r'(?<!\\)"(id|type)"[ \t\r\n]*:[ \t\r\n]*"([^"\\]*)"')


def depth(text: str, enough: int) -> int:
    """Returns how deep a JSON text is.

    Or, at less cost, a number on the same side of `enough`: up to it and no less
    than the depth, or above it and no more.
    """
    opening = text.count("{") + text.count("[")
    if opening <= enough:
        return opening
    bits = _brackets(text)
    bits += b"0" * (-len(bits) % 8)
    eights = int(bits, 2).to_bytes(len(bits) // 8, "big")
    climbs = memoryview(eights.translate(_CLIMB)).cast("b")
    before = list(accumulate(climbs, initial=0))
    highest = max(before)
    if highest > enough:
        return highest
    if highest + 8 <= enough:
        return highest + 8
    return max(map(add, before, map(_PEAK.__getitem__, eights)))


def deep_member(text: str, limit: int) -> str | None:
    """Returns which member of the object that a text is stands deeper than `limit`.

    The first such, as the text spells its name; None where there is none.
    """
    steps = _brackets(text).translate(_STEP)
    levels = list(accumulate(memoryview(steps).cast("b")))
    if limit + 1 not in levels:
        return None
    before = levels.index(limit + 1)
    opening = before - levels[before::-1].index(1) + 1
    unescaped = _unescaped(text)
    end = unescaped.rfind('"', 0, _position(unescaped, opening))
    return text[unescaped.rfind('"', 0, end) + 1 : end]


def outer_texts(text: str) -> dict[str, str]:
    """Returns the `id` and the `type` of the object that the text is.

    Those that are plain strings; however deep its other members are.
    """
    found: dict[str, str] = {}
    level = end = 0
    for member in _TEXT_MEMBER.finditer(text):
        brackets = _brackets(text[end : member.start()])
        level += 2 * brackets.count(b"1") - len(brackets)
        end = member.end()
        if level == 1:
            found[member[1]] = member[2]
    return found


def type_stands_twice(text: str) -> bool:
    """Whether the object that the text is has more than one `type`."""
    if text.count('"type"') < 2:
        return False
    marked = _TYPE.sub(_MARK, _unescaped(text))
    between = _brackets(marked).split(_MARK.encode())[:-1]
    opening = map(bytes.count, between, repeat(b"1"))
    levels = accumulate(map(sub, map(mul, opening, repeat(2)), map(len, between)))
    return list(levels).count(1) > 1


def _position(text: str, number: int) -> int:
    """Returns where the bracket is that so many stand before, strings left out."""
    start, end, in_string = 0, len(text), False
    while end - start > 1:
        middle = (start + end) // 2
        half = text[start:middle]
        brackets = len(_brackets(f'"{half}' if in_string else half))
        if brackets > number:
            end = middle
        else:
            start, number = middle, number - brackets
            in_string ^= half.count('"') % 2 == 1
    return start


def _unescaped(text: str) -> str:
    """Returns the text without quotes inside of strings."""
    return text.replace("\\\\", "__").replace('\\"', "__")


def _brackets(text: str) -> bytes:
    if "\\" in text:
        text = _unescaped(text)
    bare = "".join(text.split('"')[::2]).encode("ascii", "ignore")
    return bare.translate(_AS_BITS, delete=_OTHER)
