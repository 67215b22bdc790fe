"""When users come and go: stages as functions of the time since the start.

Pure: the random source is an argument, times are seconds.
"""

import math
from collections.abc import Iterator, Sequence
from random import Random

from msgspec import Struct

from client_demo.load.scenario import Group, Stage

# The fractional part of its multiples is spread evenly, however many are taken.
_GOLDEN = (math.sqrt(5) - 1) / 2


class Span(Struct, frozen=True, kw_only=True):
    """A stage with where it begins.

    Attributes:
        begin_seconds: Since the start of the run.
        seconds: How long.
        low: The number at its begin.
        high: The number at its end.
    """

    begin_seconds: float
    seconds: float
    low: float
    high: float


def spans(stages: Sequence[Stage]) -> list[Span]:
    """Lays the stages end to end."""
    found: list[Span] = []
    begin_seconds = low = 0.0
    for stage in stages:
        rate = stage.arrivals_per_second
        high = float(stage.users or 0) if rate is None else rate
        found.append(
            Span(begin_seconds=begin_seconds, seconds=stage.seconds, low=low, high=high)
        )
        begin_seconds, low = begin_seconds + stage.seconds, high
    return found


def length_seconds(stages: Sequence[Stage]) -> float:
    """How long all of them last."""
    return sum(stage.seconds for stage in stages)


def due_seconds(stages: Sequence[Stage], user: int, now_seconds: float) -> float | None:
    """Says when a user is to be at it.

    Args:
        stages: With `users`.
        user: Its number, from 0.
        now_seconds: Not before this time.

    Returns:
        The time, not before `now_seconds`; None where it is not wanted any more. In a
        stage of no length, that is the time of the stage.
    """
    for span in spans(stages):
        end_seconds = span.begin_seconds + span.seconds
        if end_seconds < now_seconds or (span.seconds == 0 and span.high <= user):
            continue
        at_seconds = _reached(span, user + 1, max(now_seconds, span.begin_seconds))
        if at_seconds is not None:
            return at_seconds
    return None


def _reached(span: Span, wanted: int, from_seconds: float) -> float | None:
    if span.seconds == 0:
        return from_seconds if span.high >= wanted else None
    slope = (span.high - span.low) / span.seconds
    level = span.low + slope * (from_seconds - span.begin_seconds)
    if level >= wanted:
        return from_seconds
    if span.high < wanted:
        return None
    return from_seconds + (wanted - level) / slope


def arrivals(stages: Sequence[Stage], random: Random) -> Iterator[float]:
    """Draws when users come: independent of each other (Poisson), in order.

    Args:
        stages: With `arrivals_per_second`.
        random: The same seed draws the same times.
    """
    waited = random.expovariate(1.0)
    passed = 0.0
    for span in spans(stages):
        if not span.seconds:
            continue
        total = span.seconds * (span.low + span.high) / 2
        while waited <= passed + total:
            yield span.begin_seconds + _time_of(span, waited - passed)
            waited += random.expovariate(1.0)
        passed += total


def _time_of(span: Span, count: float) -> float:
    """Inverts the number that have come since the begin of a span."""
    slope = (span.high - span.low) / span.seconds
    if not slope:
        return count / span.low
    return (math.sqrt(max(0.0, span.low**2 + 2 * slope * count)) - span.low) / slope


def group_of(groups: Sequence[Group], user: int) -> Group:
    """Gives each user a group, so that any number of users shows the weights."""
    place = ((user + 0.5) * _GOLDEN) % 1.0 * sum(group.weight for group in groups)
    for group in groups:
        place -= group.weight
        if place < 0:
            return group
    return groups[-1]


def most_users(stages: Sequence[Stage]) -> int:
    """The largest number of users at once; 0 for stages with arrivals."""
    return max((stage.users or 0 for stage in stages), default=0)
