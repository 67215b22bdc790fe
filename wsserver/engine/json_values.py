"""What JSON can hold and many libraries for it can't: long integers, deep nesting. Pure.

And how much of it there is.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec import Struct

from protocol.nesting import MAX_DEPTH
from protocol.rules import member_step

_LEAST: Final = -(2**63)
_BEYOND: Final = 2**64


class Misfit(Struct, frozen=True):
    """A part of a value that few libraries could carry.

    Attributes:
        path: Where it stands; "" for the value itself, or where it is too deep to tell.
        what: What it is.
        remedy: What to do.
    """

    path: str
    what: str
    remedy: str


def misfit(value: object, path: str = "", depth: int = MAX_DEPTH) -> Misfit | None:
    """Returns the first such part of a value; None where there is none.

    Args:
        value: As JSON or TOML have it.
        path: What stands before the paths of its parts.
        depth: How deep tables and lists may stand in each other.
    """
    if isinstance(value, int) and not _LEAST <= value < _BEYOND:
        return Misfit(path, "an integer beyond 64 bits", "write a smaller one")
    if not isinstance(value, dict | list | tuple):
        return None
    if depth == 0:
        what = f"tables and lists that stand more than {MAX_DEPTH} deep in each other"
        return Misfit("", what, "write it flatter")
    members = _members(cast("Any", value))
    found = (misfit(each, path + step, depth - 1) for step, each in members)
    return next(filter(None, found), None)


def parts(value: object, enough: int) -> int:
    """Counts the lists and objects of a value, itself too; up to `enough`, no further."""
    count, waiting = 0, [value]
    while waiting and count < enough:
        each = waiting.pop()
        if isinstance(each, dict):
            each = list(cast("dict[str, object]", each).values())
        if isinstance(each, list):
            count += 1
            within = cast("list[object]", each)
            waiting += [one for one in within if isinstance(one, dict | list)]
    return count


def _members(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, each in cast("dict[object, object]", value).items():
            yield member_step(str(name)), each
    else:
        for index, each in enumerate(value):
            yield f"[{index}]", each
