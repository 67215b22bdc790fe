"""What a recording and its replay are compared by, in the order in which it comes."""

from typing import Any

from msgspec import Struct

from wsserver.operations.counted import counted

Key = tuple[str | int, ...]


class Milestone(Struct, frozen=True):
    """Something that clients were shown.

    Attributes:
        key: What it is, the same on both sides.
        value: What is compared; of a text, how many bytes there were.
    """

    key: Key
    value: Any = None

    @property
    def is_text(self) -> bool:
        """Whether it says how far a text had come."""
        return self.key[0] == "text"


def in_words(milestone: Milestone) -> str:
    """Says what a milestone is."""
    match milestone.key:
        case ("welcome", connection):
            words = f"{connection}: welcome"
        case ("closed", connection):
            words = f"{connection}: the end of the connection"
        case ("reply", connection, command, nth):
            again = "" if nth == 1 else f", number {nth}"
            words = f"{connection}: the reply to `{command}`{again}"
        case ("caught_up", connection, name, _):
            words = f"{connection}: `caught_up` of {name}"
        case ("refused", connection, nth):
            words = f"{connection}: `error` number {nth}"
        case ("text", name, turn, kind):
            size = counted(milestone.value, "byte")
            words = f"{name}: {size} of `{kind}` of turn {turn}"
        case (kind, connection, name, int() as turn):
            words = f"{connection}, {name}: `{kind}` of turn {turn}"
        case (kind, connection, name, which):
            words = f"{connection}, {name}: `{kind}` of {which}"
        case _:
            raise AssertionError(f"{milestone.key} is no milestone")
    return words
