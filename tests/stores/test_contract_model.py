"""Any sequence of writes and reads gives what a plain list would give.

One machine drives a store and a model of it that keeps single entries only; reads
are compared number by number, whatever the store has joined or cut.
"""

import asyncio
import tempfile
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from tests.stores.samples import NOW, only
from tests.stores.sqlite_rig import crash
from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, Receipt, Store, Write
from wsserver.stores.memory import MemoryStore
from wsserver.stores.sqlite.store import SqliteStore

T = TypeVar("T")

KEYS = ["anna/1", "anna/2", "bob/1"]
KINDS = st.sampled_from(["delta", "delta", "delta", "reasoning", "usage", "done"])
TEXT = st.text(
    st.sampled_from('a\0"\\\n\xe9\u2028\U0001f469') | st.characters(codec="utf-8"),
    max_size=5,
)
APPENDED = st.lists(st.tuples(KINDS, TEXT), max_size=6)
GROUP = st.dictionaries(st.sampled_from(KEYS), APPENDED, min_size=1)


class Kept:
    """The model of one conversation."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []  # single ones
        # First, last, at; a store may have cut one finer, where text was streamed.
        self.rows: list[tuple[int, int, float]] = []
        self.streaming = False  # the newest row was
        self.meta = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
        self.written = 0.0
        self.receipts: list[Receipt] = []

    def stream(self, entries: list[Entry], at: float) -> None:
        first = entries[0].first
        if self.streaming:
            first = self.rows.pop()[0]
        self.rows.append((first, entries[-1].seq, at))
        self.entries += entries
        self.streaming = True

    def add_rows(self, entries: list[Entry], at: float) -> None:
        first = entries[0].first if entries else 0
        for entry in entries:
            if entry.kind == "done" or entry is entries[-1]:
                self.rows.append((first, entry.seq, at))
                first = entry.seq + 1

    def size(self, row: tuple[int, int, float]) -> int:
        return sum(
            len(entry.body) for entry in self.entries if row[0] <= entry.seq <= row[1]
        )


class Stores(RuleBasedStateMachine):
    """Drives a store beside its model.

    Attributes:
        running: The conversations whose text it has to take at once.
    """

    def make(self) -> Store:
        raise NotImplementedError

    def run(self, wanted: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.store: Store = self.make()
        self.model: dict[str, Kept] = {}
        self.running: set[str] = set()
        self.now = NOW

    def commit(self, *writes: Write, streaming: bool = False) -> None:
        self.now += 1.0
        self.run(self.store.commit(writes, self.now))
        for write in writes:
            if write.delete:
                del self.model[write.key]
            else:
                kept = self.model.setdefault(write.key, Kept())
                assert write.meta is not None
                kept.meta, kept.written = write.meta, self.now
                kept.streaming = kept.streaming and streaming

    def next_meta(self, key: str, count: int, **members: Any) -> Meta:
        last = self.model[key].meta if key in self.model else Kept().meta
        values = {
            "epoch": last.epoch,
            "head": last.head + count,
            "oldest": last.oldest,
            "live": self.now % 3 == 0,
            "state": b"%d" % count,
        }
        return Meta(**(values | members))

    def made(self, key: str, pieces: list[tuple[str, str]]) -> list[Entry]:
        head = self.model[key].meta.head if key in self.model else 0
        return [
            text_entry(kind, seq, 1, text)
            if kind in {"delta", "reasoning"}
            else Entry(kind, seq, seq, 1, text.encode())
            for seq, (kind, text) in enumerate(pieces, head + 1)
        ]

    @rule(group=GROUP)
    def append(self, group: dict[str, list[tuple[str, str]]]) -> None:
        made = {key: self.made(key, pieces) for key, pieces in group.items()}
        self.commit(
            *(
                Write(key=key, meta=self.next_meta(key, len(new)), entries=new)
                for key, new in made.items()
            )
        )
        for key, new in made.items():
            self.model[key].entries += new
            self.model[key].add_rows(new, self.now)

    @precondition(lambda self: self.model)
    @rule(
        group=st.dictionaries(
            st.sampled_from(KEYS), st.lists(TEXT, min_size=1, max_size=3), min_size=1
        )
    )
    def stream(self, group: dict[str, list[str]]) -> None:
        """Appends what a turn appends while its model speaks."""
        made = {
            key: self.made(key, [("delta", text) for text in texts])
            for key, texts in group.items()
            if key in self.model
        }
        metas = {
            key: replace(self.model[key].meta, head=new[-1].seq, live=True)
            for key, new in made.items()
        }
        self.commit(
            *(Write(key=key, meta=metas[key], entries=made[key]) for key in made),
            streaming=True,
        )
        for key, new in made.items():
            self.model[key].stream(new, self.now)

    @rule(key=st.sampled_from(KEYS), texts=st.lists(TEXT, min_size=1, max_size=4))
    def put(self, key: str, texts: list[str]) -> None:
        """Appends the same where the store takes it at once."""
        for entry in self.made(key, [("delta", text) for text in texts]):
            if self.store.put_text(key, entry):
                assert self.model[key].meta.live, "no turn runs"
                kept = self.model[key]
                kept.meta = replace(kept.meta, head=entry.seq)
                kept.stream([entry], self.now)
            else:
                assert key not in self.running

    @precondition(lambda self: self.model)
    @rule(data=st.data(), pieces=APPENDED, limit=st.sampled_from([1, 20, 10**6]))
    def compact(
        self, data: st.DataObject, pieces: list[tuple[str, str]], limit: int
    ) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        kept, new = self.model[key], self.made(key, pieces)
        rows = kept.rows
        begin = data.draw(st.integers(0, len(rows)))
        end = len(rows) if new else data.draw(st.integers(begin, len(rows)))
        first = rows[begin][0] if begin < len(rows) else kept.meta.head + 1
        last = new[-1].seq if new else (rows[end - 1][1] if end > begin else 0)
        old = [entry for entry in kept.entries if first <= entry.seq <= last]
        joined = compact(compact([*old, *new][:3], limit) + [*old, *new][3:], limit)

        self.commit(
            Write(
                key=key,
                meta=self.next_meta(key, len(new)),
                entries=new,
                compacted=joined,
            )
        )

        kept.entries += new
        behind = rows[end:]
        del rows[begin:]
        kept.add_rows(joined, self.now)
        rows += behind

    @precondition(lambda self: self.model)
    @rule(data=st.data(), pieces=APPENDED)
    def trim(self, data: st.DataObject, pieces: list[tuple[str, str]]) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        kept, new = self.model[key], self.made(key, pieces)
        ends = [0, *(last for _, last, _ in kept.rows), kept.meta.head + len(new)]
        through = data.draw(st.sampled_from(ends))

        self.commit(
            Write(
                key=key,
                meta=self.next_meta(key, len(new), oldest=through + 1),
                entries=new,
                trim_through=through,
            )
        )

        kept.entries += new
        kept.add_rows(new, self.now)
        kept.rows = [row for row in kept.rows if row[1] > through]
        first = kept.rows[0][0] if kept.rows else kept.meta.head + 1
        kept.entries = [entry for entry in kept.entries if entry.seq >= first]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.commit(
            Write(key=data.draw(st.sampled_from(sorted(self.model))), delete=True)
        )

    @rule(key=st.sampled_from(KEYS), who=st.sampled_from("ab"), name=st.integers(0, 9))
    def remember(self, key: str, who: str, name: int) -> None:
        given = Receipt(
            principal=who, id=str(name), digest=b"\0", reply=b"\xff", at=self.now
        )
        self.commit(Write(key=key, meta=self.next_meta(key, 0), receipts=[given]))
        receipts = self.model[key].receipts
        receipts[:] = [r for r in receipts if (r.principal, r.id) != (who, str(name))]
        receipts.append(given)

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def read(self, key: str, data: st.DataObject) -> None:
        kept = self.model.get(key, Kept())
        after = data.draw(st.integers(0, kept.meta.head + 1))
        most = data.draw(st.sampled_from([0, 1, 7, 30, 10**6]))

        got = self.run(self.store.read(key, after, most))

        wanted = [entry for entry in kept.entries if entry.seq > after]
        singles = only(got, after)
        assert singles == wanted[: len(singles)]
        assert bool(got) == bool(wanted)
        assert all(a.seq + 1 == b.first for a, b in pairwise(got))
        assert len(got) <= 1 or sum(len(entry.body) for entry in got) <= most
        if most == 10**6:
            assert singles == wanted

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def find_trim_point(self, key: str, data: st.DataObject) -> None:
        before = data.draw(st.integers(int(NOW), int(self.now) + 2))
        keep_bytes = data.draw(st.integers(0, 40))
        kept, point = self.model.get(key, Kept()), 0
        dones = {entry.seq for entry in kept.entries if entry.kind == "done"}
        for index, row in enumerate(kept.rows):
            newer = sum(kept.size(newer) for newer in kept.rows[index + 1 :])
            if row[2] >= before and newer < keep_bytes:
                break
            if row[1] in dones:
                point = row[1]

        assert self.run(self.store.trim_point(key, before, keep_bytes)) == point

    @rule(key=st.sampled_from(KEYS), age=st.integers(0, 9), limit=st.integers(0, 4))
    def read_receipts(self, key: str, age: int, limit: int) -> None:
        kept = self.model.get(key, Kept())
        wanted = [
            given
            for index, given in enumerate(kept.receipts)
            if given.at >= self.now - age
            or sum(r.principal == given.principal for r in kept.receipts[index:])
            <= limit
        ]

        assert self.run(self.store.receipts(key, self.now - age, limit)) == wanted

    @rule(age=st.integers(0, 9), limit=st.integers(0, 3))
    def find_idle(self, age: int, limit: int) -> None:
        idle = sorted(
            (kept.written, key)
            for key, kept in self.model.items()
            if not kept.meta.live and kept.written < self.now - age
        )
        assert self.run(self.store.idle(self.now - age, limit)) == [
            key for _, key in idle[:limit]
        ]

    @invariant()
    def metas_are_kept(self) -> None:
        for key in KEYS:
            kept = self.model.get(key)
            assert self.run(self.store.meta(key)) == (kept and kept.meta)
        for space in ("anna", "bob"):
            count = sum(key.startswith(f"{space}/") for key in self.model)
            assert self.run(self.store.count(space)) == count
        live = sorted(key for key, kept in self.model.items() if kept.meta.live)
        assert sorted(self.run(self.store.live())) == live

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())


class MemoryStores(Stores):
    def make(self) -> Store:
        return MemoryStore()

    def run(self, wanted: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            return await wanted

        return trio.run(main)


class SqliteStores(Stores):
    """Also closes or leaves the file and opens it again in between."""

    store: SqliteStore

    def make(self) -> SqliteStore:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        return self.open()

    def open(self) -> SqliteStore:
        path = Path(self.folder.name, "s.db")
        return SqliteStore(path, durability="process", boot="b")

    def run(self, wanted: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(wanted)

    def commit(self, *writes: Write, streaming: bool = False) -> None:
        super().commit(*writes, streaming=streaming)
        for write in writes:
            live = write.meta is not None and write.meta.live
            (self.running.add if live else self.running.discard)(write.key)

    @rule(killed=st.booleans())
    def reopen(self, killed: bool) -> None:
        self.running.clear()
        self.run(crash(self.store) if killed else self.store.close())
        self.store = self.open()

    @rule()
    def move(self) -> None:
        self.run(self.store._writer.call(self.store._move_text))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            super().teardown()
            self.runner.close()
            self.folder.cleanup()


MemoryStores.TestCase.settings = settings(max_examples=25, deadline=None)
SqliteStores.TestCase.settings = settings(
    max_examples=20,
    deadline=None,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow],
)
pytestmark = [pytest.mark.no_cover, pytest.mark.timeout(120)]  # to find a small case
TestMemory = MemoryStores.TestCase  # takes a while
TestSqlite = SqliteStores.TestCase
