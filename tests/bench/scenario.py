"""What a scenario is: something that is done to a row's process and yields figures."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from tests.bench.process import Process
from tests.bench.rows import Row

KEEPS_UP = 0.9
"""The share of the tokens that has to arrive in time."""

Figures = dict[str, float]


class Rig(Struct, frozen=True, kw_only=True):
    """What a scenario works with.

    Attributes:
        row: What is measured.
        relay: Its process.
        upstream: The mock upstream's.
        run: A name for this run, so that conversations of two runs differ.
        seconds: How long steady streams are watched.
    """

    row: Row
    relay: Process
    upstream: Process
    run: str
    seconds: float


class Column(Struct, frozen=True, kw_only=True):
    """A column of a scenario's table.

    Attributes:
        key: Which figure.
        heading: What stands above it, with the unit.
        digits: After the point.
        compared: Whether its spread and its ratio to the floor are shown.
    """

    key: str
    heading: str
    digits: int = 0
    compared: bool = False


class Scenario(Struct, frozen=True, kw_only=True):
    """One table.

    Attributes:
        name: What the command line calls it.
        title: What it does, as a heading.
        note: How it is done and what its figures mean.
        columns: Of its table.
        applies: Whether a row can do it.
        run: Does it once.
        rounds: At most so many; one where the figure is not a time.
        fresh: Whether it needs a process of its own.
        group: Scenarios that grow; a row that falls behind is spared the later ones.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    applies: Callable[[Row], bool]
    run: Callable[[Rig], Awaitable[Figures]]
    rounds: int = 9
    fresh: bool = False
    group: str = ""


class FellBehind(Exception):  # noqa: N818 - it is a finding, not a fault
    """The row could not do it in time; how far it came."""


def percentile(values: list[float], at: float) -> float:
    """Returns the value that a share `at` of the values is not above."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * at), len(ordered) - 1)]
