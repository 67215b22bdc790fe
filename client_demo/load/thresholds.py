"""Thresholds: `ttft_ms.p99 < 500` and the like, read and held against figures."""

import operator
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from msgspec import Struct

from client_demo.load.figures import COUNTED, FIELDS, MEASURES, RATES, TOTALS

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_SHAPE = re.compile(r"\s*([\w.:/-]+)\s*(<=|>=|==|!=|<|>)\s*(-?\d+(?:\.\d+)?)\s*$")

NAMES = (
    *(f"{measure}_ms.{field}" for measure in MEASURES for field in FIELDS),
    *RATES,
    *TOTALS,
)
"""What a threshold may be on, apart from what is counted by code."""


class ThresholdError(ValueError):
    """The text is no threshold; says what would be."""


class Threshold(Struct, frozen=True, kw_only=True):
    """One threshold.

    Attributes:
        text: As it stands in the scenario.
        name: Of the figure.
        sign: The comparison that must hold.
        limit: With what.
    """

    text: str
    name: str
    sign: str
    limit: float


class Judged(Struct, frozen=True, kw_only=True):
    """A threshold and what came of it.

    Attributes:
        threshold: As it stands in the scenario.
        value: Of the figure; null where nothing was measured.
        held: Whether it was kept. One on nothing was not.
    """

    threshold: str
    value: float | None
    held: bool


def read_threshold(text: str) -> Threshold:
    """Takes a threshold apart.

    Raises:
        ThresholdError: It has no such shape, or is on no figure.
    """
    found = _SHAPE.match(text)
    if found is None:
        raise ThresholdError(
            f"{text!r} is not NAME OPERATOR NUMBER, such as 'ttft_ms.p99 < 500';"
            f" the operators are {' '.join(_OPERATORS)}"
        )
    name, sign, limit = found.groups()
    if name not in NAMES and name.partition(".")[0] not in COUNTED:
        close = get_close_matches(name, NAMES, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ThresholdError(
            f"there is no figure {name!r}{hint} (times end in _ms, as in ttft_ms.p99)"
        )
    return Threshold(text=text.strip(), name=name, sign=sign, limit=float(limit))


def judge(threshold: Threshold, figures: Mapping[str, float]) -> Judged:
    """Holds a threshold against figures.

    Args:
        threshold: What must hold.
        figures: By name. What is counted by code may be missing, and is 0 then.
    """
    counted = threshold.name.partition(".")[0] in COUNTED
    value = figures.get(threshold.name, 0.0 if counted else None)
    held = value is not None and _OPERATORS[threshold.sign](value, threshold.limit)
    return Judged(threshold=threshold.text, value=value, held=held)
