"""The log against a simple model: commits that succeed, fail, or are cut off."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.content import TextProof, Timing
from protocol.events import DoneEvent, StartEvent, UsageEvent
from tests.fakes.faulty import FaultyStore
from tests.log.numbers import Held, numbers
from wsserver.log import conversation_log
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.reading import read_whole
from wsserver.log.store import Meta, Receipt, Write

NEW = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
AT = "2026-01-02T03:04:05.678Z"
NO_TEXT = TextProof(bytes=0, crc32=0)
WORDS = st.text('aé日🎌"\\ ', min_size=1, max_size=5)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes, so that all that depends on them happens."""
    monkeypatch.setattr(conversation_log, "SEAL_AFTER", 4)
    monkeypatch.setattr(conversation_log, "IDLE_TAIL_BYTES", 900)
    monkeypatch.setattr(conversation_log, "MAX_MERGED_BYTES", 300)


class Model:
    """A log and its store, and what they should hold."""

    def __init__(self, data: st.DataObject, *, durable: bool) -> None:
        self.data = data
        at_once = durable and data.draw(st.booleans())
        self.store = FaultyStore(durable=durable, at_once=at_once)
        self.live_in_store = False
        self.written: Write | None = None
        self.all: dict[int, Held] = {}
        self.in_store = 0
        self.oldest = 1
        self.receipts = self.receipts_stored = 0
        self.turn = 0
        self.wakes = 0
        self.settling = 0
        self.log = self.load(NEW)

    def load(self, meta: Meta) -> ConversationLog:
        self.dirty = 0
        log = ConversationLog(
            "s/c", meta, self.store, self.mark, lambda: (b"x", bool(self.turn))
        )
        log.subscribe(self.wake)
        return log

    def mark(self, log: ConversationLog) -> None:
        assert not self.dirty, "told twice that there is something to commit"
        self.dirty += 1

    def wake(self) -> None:
        self.wakes += 1

    def append(self, event: type[Any], **members: Any) -> None:
        made = self.log.append(event, turn=self.turn, **members)
        assert made.seq == self.log.head
        tag = str(event.__struct_config__.tag)
        self.all[made.seq] = numbers(self.log.tail(made.seq))[made.seq]
        assert self.all[made.seq][:2] == (tag, self.turn)

    # Steps

    async def say(self) -> None:
        kind = self.data.draw(st.sampled_from(["delta", "delta", "reasoning"]))
        for text in self.data.draw(st.lists(WORDS, min_size=1, max_size=6)):
            self.store.failing = self.data.draw(st.integers(0, 4)) == 0
            at_once = self.store.at_once and not self.store.failing
            at_once = at_once and self.log.clean and self.live_in_store
            woken = self.wakes
            self.log.append_text(kind, self.turn, text)
            self.store.failing = False
            self.all[self.log.head] = (kind, self.turn, text)
            if at_once:
                self.in_store = self.log.head
                assert self.wakes == woken + 1

    async def start_or_end(self) -> None:
        if not self.turn:
            self.turn = self.log.head + 1
            members = {"message": 1, "model": "m", "request_id": "r", "at": AT}
            self.append(StartEvent, **members)
            if self.data.draw(st.booleans()):
                self.log.keep_from(self.turn)
        else:
            timing = Timing(queue_ms=0, total_ms=0)
            self.append(DoneEvent, status="completed", text=NO_TEXT, timing=timing)
            self.turn = 0
            if self.data.draw(st.booleans()):
                self.log.compact_soon()

    async def count(self) -> None:
        counts = {"input_tokens": 1, "output_tokens": 1, "model_calls": 1}
        self.append(UsageEvent, estimated=False, **counts)

    async def remember(self) -> None:
        self.receipts += 1
        self.log.remember(
            Receipt(
                principal="p", id=f"r{self.receipts}", digest=b"", reply=b"", at=1.0
            )
        )

    async def compact(self) -> None:
        self.log.compact_soon()

    async def trim(self) -> None:
        point = await self.store.trim_point("s/c", 1e9, 2**62)
        point = self.data.draw(st.integers(0, 1)) * point
        if point >= self.oldest:
            self.log.trim(point)
            self.oldest = point + 1

    async def begin_commit(self) -> None:
        if self.written is None and self.dirty:
            self.dirty = 0
            self.written = self.log.take_write()
            self.settling = self.log.changes

    async def end_commit(self) -> None:
        write, self.written = self.written, None
        if write is None:
            return
        assert write.meta is not None
        if self.data.draw(st.integers(0, 3)) == 0:
            self.log.not_committed()
            self.dirty = 1
            return
        woken = self.wakes
        await self.store.commit([write], 0.0)
        self.log.committed(write)
        if self.store.durable:
            assert self.wakes == woken + 1
            assert self.log.settled == self.settling
        self.in_store = write.meta.head
        self.live_in_store = write.meta.live
        self.receipts_stored += len(write.receipts)

    async def restart(self) -> None:
        """The process dies, with or without the commit under way."""
        write, self.written = self.written, None
        if write is not None and self.data.draw(st.booleans()):
            await self.store.commit([write], 0.0)
            assert write.meta is not None
            self.in_store = write.meta.head
            self.live_in_store = write.meta.live
            self.receipts_stored += len(write.receipts)
        meta = await self.store.meta("s/c")
        self.log = self.load(meta or NEW)
        self.all = {n: held for n, held in self.all.items() if n <= self.in_store}
        self.oldest = self.log.oldest
        self.receipts = self.receipts_stored
        starts = [n for n, held in self.all.items() if held[0] == "start"]
        self.turn = max(starts, default=0)
        if self.turn and any(
            held[0] == "done" for n, held in self.all.items() if n > self.turn
        ):
            self.turn = 0
        if starts and meta is not None:
            await self.log.load_tail(max(starts))

    async def read(self) -> None:
        log = self.log
        after = self.data.draw(st.integers(0, log.head))
        max_bytes = self.data.draw(st.sampled_from([0, 10, 10_000]))
        found = log.read(after, max_bytes)
        if found is None:
            assert after < self.in_store, "what is not stored is in memory"
            found = await log.fetch(after, max_bytes)
        if not found or found[0].first > after + 1:
            after = max(after, self.oldest - 1)  # the rest was trimmed
        visible = [n for n in self.all if after < n <= log.stored]
        got = numbers(found)
        assert sorted(got) == sorted(visible)[: len(got)]
        assert all(self.all[n] == held for n, held in got.items())
        assert got or not visible, "there is something to read"

    async def look_at_all(self) -> None:
        whole = numbers(
            await read_whole(
                self.log, max_bytes=self.data.draw(st.sampled_from([1, 999]))
            )
        )
        wanted = {n: held for n, held in self.all.items() if n >= self.oldest}
        assert whole == wanted
        first = self.data.draw(st.integers(1, self.log.head + 1))
        tail = numbers(self.log.tail(first))
        assert tail == {n: self.all[n] for n in tail}
        assert not tail or max(tail) == self.log.head

    async def check(self) -> None:
        log = self.log
        meta = await self.store.meta("s/c")
        stored = 0 if meta is None else meta.head
        assert stored == self.in_store
        assert log.stored == (stored if self.store.durable else log.head)
        assert log.head == max(self.all, default=0)
        assert log.oldest == self.oldest
        settled = self.written is None and not self.dirty
        if self.store.durable or log.clean or self.in_store == log.head:
            assert log.clean == settled
        assert len(await self.store.receipts("s/c", 0.0, 9)) == self.receipts_stored
        if settled:
            assert self.receipts_stored == self.receipts


STEPS: list[Callable[[Model], Any]] = [
    Model.say, Model.say, Model.start_or_end, Model.count, Model.remember,
    Model.compact, Model.trim, Model.begin_commit, Model.begin_commit,
    Model.end_commit, Model.end_commit, Model.restart, Model.read, Model.read,
    Model.look_at_all,
]  # fmt: skip


@pytest.mark.no_cover
@pytest.mark.parametrize("durable", [True, False])
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_the_log_is_the_model(durable: bool, data: st.DataObject) -> None:
    async def main() -> None:
        model = Model(data, durable=durable)
        for _ in range(data.draw(st.integers(0, 60))):
            await data.draw(st.sampled_from(STEPS))(model)
            await model.check()
        while model.written is not None or not model.log.clean:
            if not model.dirty and model.written is None:
                model.log.touch()  # takes text with it that could have waited
            await model.begin_commit()
            await model.end_commit()
        assert model.log.clean
        await model.look_at_all()
        await model.read()

    trio.run(main)
