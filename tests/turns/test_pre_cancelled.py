"""Sends that were taken back before they came are remembered for a minute."""

from wsserver.turns.clock import Clock
from wsserver.turns.pre_cancelled import REMEMBERED_SECONDS, PreCancelled


class Still(Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


def test_once_and_not_for_ever() -> None:
    clock = Still()
    known = PreCancelled(clock)
    known.add("s/c", "alice", "one")
    known.add("s/c", "alice", "two")
    assert not known.take("s/d", "alice", "one")
    assert not known.take("s/c", "bob", "one")
    assert known.take("s/c", "alice", "one")
    assert not known.take("s/c", "alice", "one")
    clock.at = REMEMBERED_SECONDS
    assert not known.take("s/c", "alice", "two")


def test_what_is_taken_back_again_is_remembered_anew() -> None:
    clock = Still()
    known = PreCancelled(clock)
    known.add("s/c", "alice", "one")
    clock.at = 50.0
    known.add("s/c", "alice", "one")
    clock.at = 100.0
    assert known.take("s/c", "alice", "one")


def test_what_is_forgotten_takes_no_memory() -> None:
    clock = Still()
    known = PreCancelled(clock)
    for number in range(1000):
        clock.at = float(number)
        known.add("s/c", "alice", f"m{number}")
        assert len(known._until) <= REMEMBERED_SECONDS + 1
