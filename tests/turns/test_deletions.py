"""Deletes that are remembered, and how many."""

import pytest

from wsserver.turns import deletions
from wsserver.turns.deletions import Deletions


def test_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MOST", 2)
    remembered = Deletions()
    for command in "abc":
        remembered.add("s/c", "alice", command)
    assert [remembered.knows("s/c", "alice", command) for command in "abc"] == [
        False,
        True,
        True,
    ]
    assert not remembered.knows("s/c", "bob", "b")
    assert not remembered.knows("s/d", "alice", "b")
