"""Lengths of time in a scenario: fixed, or drawn anew each time."""

from random import Random
from typing import Annotated, assert_never

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=0, le=86_400)]


class Distribution(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="distribution",
    forbid_unknown_fields=True,
):
    """The base of the ways in which a time may be drawn."""


class Uniform(Distribution, frozen=True, kw_only=True, tag="uniform"):
    """All between two times are alike.

    Attributes:
        min: The shortest, in seconds.
        max: The longest, in seconds.
    """

    min: Seconds
    max: Seconds


class Exponential(Distribution, frozen=True, kw_only=True, tag="exponential"):
    """Many short ones and few long ones, as between independent people.

    Attributes:
        mean: Their mean, in seconds.
        max: Longer ones are cut to this, in seconds.
    """

    mean: Seconds
    max: Seconds = 86_400


class Normal(Distribution, frozen=True, kw_only=True, tag="normal"):
    """Around a mean; never below zero.

    Attributes:
        mean: Their mean, in seconds.
        deviation: Their standard deviation, in seconds.
    """

    mean: Seconds
    deviation: Seconds


Duration = Seconds | Uniform | Exponential | Normal


def draw(duration: Duration, random: Random) -> float:
    """Returns a length of time, in seconds."""
    match duration:
        case Uniform():
            return random.uniform(duration.min, duration.max)
        case Exponential():
            if not duration.mean:
                return 0.0
            return min(random.expovariate(1 / duration.mean), duration.max)
        case Normal():
            return max(0.0, random.gauss(duration.mean, duration.deviation))
        case float() | int():
            return float(duration)
        case _:
            assert_never(duration)
