"""Times as an HdrHistogram: from 1 µs to 2 h with three digits, mergeable."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol, cast

from hdrh.histogram import HdrHistogram  # pyright: ignore[reportMissingTypeStubs]

from client_demo.load.figures import PERCENTILES

_LONGEST_US = 7_200_000_000
_DIGITS = 3


class _Hdr(Protocol):
    """What is used of the library, which has no types."""

    counts: Sequence[int]

    def record_value(self, value: int) -> bool: ...
    def decode_and_add(self, encoded_histogram: bytes) -> None: ...
    def encode(self) -> bytes: ...
    def get_total_count(self) -> int: ...
    def get_value_from_index(self, index: int) -> int: ...
    def get_highest_equivalent_value(self, value: int) -> int: ...


class Histogram:
    """How times are spread; each value is off by 0.1 % at the most."""

    __slots__ = ("_hdr",)

    def __init__(self, encoded: str | None = None) -> None:
        """Begins empty, or with what `encoded` holds."""
        self._hdr = cast("_Hdr", HdrHistogram(1, _LONGEST_US, _DIGITS))
        if encoded is not None:
            self.add(encoded)

    def record(self, seconds: float) -> None:
        """Counts a time; what is out of range counts as the nearest that is in it."""
        self._hdr.record_value(min(max(round(seconds * 1e6), 1), _LONGEST_US))

    def add(self, encoded: str) -> None:
        """Counts all that another one has counted."""
        self._hdr.decode_and_add(encoded.encode())

    def encode(self) -> str:
        """Writes it in the interchange form of HdrHistogram (V2, base64)."""
        return self._hdr.encode().decode()

    @property
    def count(self) -> int:
        """How many times were counted."""
        return self._hdr.get_total_count()

    def fields_ms(self) -> dict[str, float]:
        """Returns the fields of `figures.FIELDS`, in ms; `count` alone if empty."""
        if not self.count:
            return {"count": 0}
        values, upto = self._steps()
        numbers = [late - early for early, late in pairwise([0, *upto])]
        total = sum(
            value * number for value, number in zip(values, numbers, strict=True)
        )
        return {
            "count": self.count,
            "mean": round(total / upto[-1], 3),
            "min": values[0],
            **{
                name: values[_place(upto, share)] for name, share in PERCENTILES.items()
            },
            "max": values[-1],
        }

    def curve_ms(self) -> list[tuple[float, float]]:
        """Returns pairs of a percentile and its value in ms, dense at the end."""
        if not self.count:
            return []
        values, upto = self._steps()
        shares = [0.0]
        distance = 100.0
        while distance > 50 / self.count:
            distance /= 2**0.25
            shares.append(100 - distance)
        return [(round(share, 6), values[_place(upto, share)]) for share in shares]

    def _steps(self) -> tuple[list[float], list[int]]:
        """Returns the values in ms, ascending, and how many are up to each.

        The library's own way reads all its buckets for each question.
        """
        hdr = self._hdr
        values: list[float] = []
        numbers: list[int] = []
        for index, number in enumerate(list(hdr.counts)):
            if number:
                value = hdr.get_value_from_index(index)
                values.append(hdr.get_highest_equivalent_value(value) / 1000)
                numbers.append(number)
        return values, list(accumulate(numbers))


def _place(upto: list[int], share: float) -> int:
    return bisect_left(upto, max(1, int(share * upto[-1] / 100 + 0.5)))
