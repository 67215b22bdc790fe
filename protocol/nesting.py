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


def _unescaped(text: str) -> str:
    """Returns the text without quotes inside of strings."""
    return text.replace("\\\\", "__").replace('\\"', "__")


def _brackets(text: str) -> bytes:
    if "\\" in text:
        text = _unescaped(text)
    bare = "".join(text.split('"')[::2]).encode("ascii", "ignore")
    return bare.translate(_AS_BITS, delete=_OTHER)
