"""Python tools of many kinds, as their authors would write them."""

import dataclasses
import datetime
import enum
import threading
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec
from pydantic import BaseModel

from wsserver.tools import ToolContext, ToolError


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclasses.dataclass
class Place:
    city: str
    country: str | None = None


class Forecast(BaseModel):
    place: str
    when: datetime.date


async def weather(
    place: Place,
    unit: Unit = Unit.C,
    days: Annotated[int, msgspec.Meta(ge=1, le=7, description="How many days.")] = 1,
) -> dict[str, Any]:
    """Says how the weather will be.

    Args:
        place: Where.
        unit: Of the temperature.
        days: How many days.
    """
    return {"place": place, "unit": unit, "days": days}


def add(a: int, b: int = 1, *, words: list[str] | None = None) -> int:
    """Adds."""
    return a + b + len(words or ())


def where() -> str:
    return threading.current_thread().name


def anything(value):
    return value


def asks(context: ToolContext, times: int = 1) -> str:
    for _ in range(times):
        context.progress()
    return f"{context.principal} in {context.conversation}: {context.call}"


def keeps(words: list[str] = ["a"]) -> list[str]:  # noqa: B006 - on purpose
    return words


def fails(how: Literal["tool", "value", "empty", "exit", "stop"]) -> None:
    match how:
        case "tool":
            raise ToolError("no such city")
        case "value":
            raise ValueError("a bad value")
        case "empty":
            raise ValueError
        case "exit":
            raise SystemExit(3)
        case "stop":
            raise StopIteration


async def exits() -> None:
    raise SystemExit(3)


def odd(kind: str) -> Any:
    return {
        "bytes": b"\x00\xff",
        "date": datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC),
        "set": {"a"},
        "object": object(),
        "path": Path("some/file"),
        "pydantic": Forecast(place="Rome", when=datetime.date(2026, 11, 29)),
        "dataclass": Place(city="Rome"),
        "keys": {1: "a", datetime.date(2026, 11, 29): "b"},
        "tuple": (1, 2),
        "none": None,
        "generator": (n for n in range(3)),
        "huge int": 2**70,
        "infinity": float("inf"),
    }[kind]


def deep() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


RELEASE = threading.Event()


def stuck() -> str:
    """Waits in a thread until it is released."""
    RELEASE.wait()
    return "released"


def forever() -> None:
    """Never ends, whatever happens."""
    threading.Event().wait()


async def slow() -> None:
    await anyio.sleep_forever()


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, by: int = 1) -> int:
        self.count += by
        return self.count

    async def later(self, by: int) -> int:
        """Counts later."""
        return self(by)


counter = Counter()
add_two = partial(add, b=2)


def generator():
    yield 1


async def async_generator():
    yield 1


def many(*values: int) -> int:
    return sum(values)


def by_place(a: int, /) -> int:
    return a


def unhinted(a: "Nowhere") -> None:  # noqa: F821
    pass


def unjson(a: threading.Thread) -> None:
    pass


NOT_CALLABLE = 7
