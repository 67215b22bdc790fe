"""What the docstrings of the Structs say, as a schema can carry it."""

import inspect
import re
from collections.abc import Iterable

from msgspec import Struct

_ATTRIBUTE = re.compile(r"^    (\w+): ?", re.MULTILINE)


def summary_of(struct: type[Struct]) -> str:
    """Returns what the docstring says of the Struct as a whole."""
    return _joined(_docstring(struct).partition("\n\nAttributes:\n")[0])


def members_of(struct: type[Struct]) -> dict[str, str]:
    """Returns what it and its bases say of each member, by the member's name."""
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            found |= _members(_docstring(base).partition("\n\nAttributes:\n")[2])
    return {name: found[name] for name in struct.__struct_fields__ if name in found}


def _docstring(struct: type) -> str:
    return inspect.cleandoc(struct.__doc__ or "")


def _members(section: str) -> Iterable[tuple[str, str]]:
    _, *parts = _ATTRIBUTE.split(section)
    return zip(parts[::2], map(_joined, parts[1::2]), strict=True)


def _joined(text: str) -> str:
    """Joins the lines of each paragraph."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)
