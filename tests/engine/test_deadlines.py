"""What is due when."""

import pytest

from wsserver.engine.deadlines import NEVER, Deadlines, Patience

PATIENCE = Patience(turn_seconds=100.0, first_token_seconds=20.0, idle_seconds=5.0)


def made() -> Deadlines:
    deadlines = Deadlines(PATIENCE, 0.0)
    deadlines.called(1.0)
    return deadlines


@pytest.mark.parametrize(
    ("phase", "at"),
    [
        ("connecting", 10.0),
        ("waiting_first_token", 10.0),
        ("streaming", 6.0),
        ("retry_wait", 7.0),
        ("waiting_tools", 8.0),
        ("stopping", 9.0),
        ("ended", NEVER),
    ],
)
def test_the_next_deadline_of_each_phase(phase: str, at: float) -> None:
    deadlines = made()
    deadlines.retry_at = 7.0
    deadlines.close_by = 9.0
    assert deadlines.next(phase, 8.0) == at
    if at != NEVER:
        assert deadlines.due(phase, 8.0, at - 0.01) is None
        assert deadlines.due(phase, 8.0, at) is not None


@pytest.mark.parametrize("phase", ["connecting", "streaming", "waiting_tools"])
def test_that_nobody_watches_is_what_counts_most(phase: str) -> None:
    deadlines = made()
    deadlines.abandon_at = 50.0
    assert deadlines.due(phase, 40.0, 1e9) == "abandoned"


def test_the_end_of_the_turn_goes_before_silence() -> None:
    assert made().due("streaming", NEVER, 100.0) == "turn_timeout"
    assert made().due("connecting", NEVER, 100.0) == "turn_timeout"
    assert made().due("connecting", NEVER, 21.0) == "silent"


def test_a_sign_of_life_after_long_silence_gives_as_long_as_a_stream_has() -> None:
    deadlines = made()
    deadlines.active_at = 3.0
    deadlines.shown_waiting(90.0)
    assert deadlines.next("waiting_first_token", NEVER) == 21.0
    deadlines.active_at = 20.0
    assert deadlines.next("waiting_first_token", NEVER) == 25.0


def test_tools_stop_the_clock_of_the_turn() -> None:
    deadlines = made()
    deadlines.tools_began(10.0)
    assert deadlines.next("waiting_tools", 5000.0) == 5000.0
    deadlines.tools_ended(4000.0)
    deadlines.active_at = 4090.0
    assert deadlines.due("streaming", NEVER, 4089.9) is None
    assert deadlines.due("streaming", NEVER, 4090.0) == "turn_timeout"
