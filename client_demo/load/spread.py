"""How far the rounds of a run lie apart."""

from msgspec import Struct

from client_demo.load.figures import MEASURES
from client_demo.load.report import Report

_FIELDS = ("p50", "p99")
# Of fewer times a percentile says nothing.
_LEAST = 10


class Spread(Struct, frozen=True, kw_only=True):
    """One figure over all rounds.

    Attributes:
        name: Of the measure and the percentile.
        values: By round, in ms.
        percent: The widest distance by the mean.
    """

    name: str
    values: list[float]
    percent: float


def spreads(report: Report) -> list[Spread]:
    """Compares the rounds; empty where there is only one."""
    if len(report.rounds) < 2:
        return []
    found: list[Spread] = []
    for measure in MEASURES:
        counts = [one.figures[f"{measure}_ms.count"] for one in report.rounds]
        if min(counts) < _LEAST:
            continue
        for field in _FIELDS:
            values = [one.figures[f"{measure}_ms.{field}"] for one in report.rounds]
            percent = spread_percent(values)
            found.append(
                Spread(name=f"{measure} {field}", values=values, percent=percent)
            )
    return found


def spread_percent(values: list[float]) -> float:
    """How far values lie apart: the widest distance by their mean, in percent."""
    mean = sum(values) / len(values)
    return 100 * (max(values) - min(values)) / mean if mean else 0.0
