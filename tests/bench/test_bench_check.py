"""The benchmark's short form fails on a ratio only."""

import pytest

from tests.bench.check import Costs, judge

OURS = "wsserver-sqlite"


def costs(ours: float | None, floor: float | None) -> Costs:
    return {OURS: ours, "floor": floor}


@pytest.mark.parametrize(
    ("rounds", "fine"),
    [
        ([costs(30, 10)], True),
        ([costs(50, 10)], False),
        ([costs(50, 10), costs(30, 10)], True),
        ([costs(3000, 1000)], True),
        ([costs(50, None)], True),
        ([costs(None, None)], True),
        ([costs(None, 10)], False),
        ([costs(None, 10), costs(30, 10)], True),
        ([costs(30, None), costs(50, 10)], False),
    ],
)
def test_the_best_ratio_decides(rounds: list[Costs], fine: bool) -> None:
    assert (judge(rounds, OURS, "floor", 4.0) is None) is fine
