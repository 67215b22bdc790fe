"""The tally of tokens."""

from typing import Any

from wsserver.engine.model import Usage
from wsserver.engine.usage import Tally


def members(tally: Tally) -> tuple[Any, ...]:
    made = tally.members()
    names = ("input_tokens", "output_tokens", "estimated", "model_calls")
    return tuple(made[name] for name in names)


def call(tally: Tally, usage: Usage | None, fragments: int = 0, size: int = 0) -> None:
    tally.called(40)
    tally.fragments += fragments
    tally.bytes += size
    tally.ended(usage)


def test_reports_of_all_calls_add_up() -> None:
    tally = Tally()
    call(tally, Usage(input_tokens=5, output_tokens=2, cached_tokens=4))
    call(tally, Usage(input_tokens=9, output_tokens=1, reasoning_tokens=7))
    assert members(tally) == (14, 3, False, 2)
    assert tally.members()["reasoning_tokens"] == 7
    assert tally.members()["cached_tokens"] == 4


def test_what_nobody_reported_is_absent_not_zero() -> None:
    tally = Tally()
    call(tally, Usage(input_tokens=5, output_tokens=2))
    assert tally.members()["reasoning_tokens"] is None
    assert tally.members()["cached_tokens"] is None


def test_a_call_without_report_is_estimated() -> None:
    tally = Tally()
    call(tally, None, fragments=3, size=5)
    assert members(tally) == (10, 3, True, 1)
    call(tally, None, fragments=1, size=9)
    assert members(tally) == (20, 6, True, 2)
    call(tally, Usage(input_tokens=1, output_tokens=1))
    assert members(tally) == (21, 7, True, 3), "once estimated, always"


def test_a_call_that_ended_is_not_counted_again() -> None:
    tally = Tally()
    call(tally, Usage(input_tokens=5, output_tokens=2))
    tally.ended(None)
    tally.ended(Usage(input_tokens=5, output_tokens=2))
    assert members(tally) == (5, 2, False, 1)


def test_a_refused_call_costs_what_was_reported_or_nothing() -> None:
    tally = Tally()
    tally.called(400)
    tally.refused(None)
    tally.ended(None)
    assert members(tally) == (0, 0, False, 1)
    tally.called(400)
    tally.refused(Usage(input_tokens=3, output_tokens=0))
    assert members(tally) == (3, 0, False, 2)


def test_a_call_that_was_refused_after_all_costs_what_came() -> None:
    tally = Tally()
    tally.called(40)
    tally.fragments += 3
    tally.refused(None)
    assert members(tally) == (10, 3, True, 1)


def test_a_turn_that_called_no_model_counts_as_one_call() -> None:
    assert members(Tally()) == (0, 0, False, 1)
