"""How times are spread, in a number of counts that does not grow with theirs.

A time is counted at the nearest of values that each lie 1 % above the one before, so
that it is off by 0.5 % at the most. Coarser than `histogram`, which keeps an array of
all its values: hundreds of these travel between processes.
"""

import math
from collections import Counter
from collections.abc import Mapping

_STEP = math.log(1.01)
_LEAST_MS = 0.001


def nearest(ms: float) -> float:
    """Returns the value at which a time is counted, in ms."""
    step = round(math.log(max(ms, _LEAST_MS)) / _STEP)
    return float(f"{math.exp(step * _STEP):.5g}")


def together(one: Mapping[float, int], other: Mapping[float, int]) -> dict[float, int]:
    """Adds the counts of two."""
    return dict(Counter(one) + Counter(other))


def quantile(counts: Mapping[float, int], part: float) -> float:
    """Returns the value that a part of the times, above 0, is not longer than.

    Args:
        counts: Times by their value; at least one.
        part: Up to 1.
    """
    left = max(1, math.ceil(part * sum(counts.values())))
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    raise AssertionError("a part is up to 1")
