"""Deletes that are remembered, and how many."""

import tracemalloc

import pytest
from msgspec import structs

from protocol.commands import Delete
from wsserver.turns import deletions
from wsserver.turns.deletions import Deletions
from wsserver.turns.errors import CommandError


def delete(id_: str) -> Delete:
    return Delete(id=id_, conversation="c")


def test_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MOST", 2)
    remembered = Deletions()
    for id_ in "abc":
        remembered.add("s/c", "alice", delete(id_))
    assert [remembered.knows("s/c", "alice", delete(id_)) for id_ in "abc"] == [
        False,
        True,
        True,
    ]
    assert not remembered.knows("s/c", "bob", delete("b"))
    assert not remembered.knows("s/d", "alice", delete("b"))


def test_an_id_is_for_one_delete() -> None:
    remembered = Deletions()
    remembered.add("s/c", "alice", delete("a"))
    with pytest.raises(CommandError, match="idempotency_conflict"):
        remembered.knows("s/c", "alice", structs.replace(delete("a"), epoch="e2"))


def test_what_is_remembered_takes_little_memory() -> None:
    remembered = Deletions()
    tracemalloc.start()
    for n in range(1_000):
        remembered.add(f"s/conversation-{n}", "alice", delete(f"a-client-{n}"))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken / 1_000 < 200
