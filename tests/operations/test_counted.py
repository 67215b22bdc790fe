"""One of a thing is not several, wherever an operator reads of it."""

import pytest

from wsserver.operations.checks.dialogue import judge_stream
from wsserver.operations.checks.upstream import Sample, judge
from wsserver.operations.counted import counted
from wsserver.operations.replay.player import Outcome

ONE = Sample(pieces=1, reads=1, first=0.1, last=0.1, end=0.2, failure=None)
LEFT_OUT = Outcome(
    difference=None, recorded_faults=(), connections=1, skipped=1, milestones=1
)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 tokens"), (1, "1 token"), (1234, "1,234 tokens")]
)
def test_what_is_counted(count: int, text: str) -> None:
    assert counted(count, "token") == text


def test_one_of_a_thing() -> None:
    assert "100 ms, 1 piece in 1 read over 0 ms" in judge("m", ONE, "").says
    assert "came in 1 part " in judge_stream([1.0]).says
    assert next(iter(LEFT_OUT.lines())) == "left out: 1 connection, open before"
