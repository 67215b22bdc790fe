"""A log to try, and what is appended to it."""

from typing import Any

from protocol.events import UsageEvent
from tests.fakes.faulty import FaultyStore
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta, Receipt

NEW = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
USAGE = {"input_tokens": 1, "output_tokens": 1, "estimated": False, "model_calls": 1}


class Made:
    """A log that is committed by hand."""

    def __init__(self, store: FaultyStore, meta: Meta = NEW, key: str = "s/c") -> None:
        self.store = store
        self.live = True
        self.dirty = 0
        self.woken = 0
        self.log = ConversationLog(
            key, meta, store, self._mark, lambda: (b"", self.live)
        )
        self.log.subscribe(self._wake)

    def _mark(self, log: ConversationLog) -> None:
        self.dirty += 1

    def _wake(self) -> None:
        self.woken += 1

    def say(self, count: int, turn: int = 1) -> None:
        for _ in range(count):
            self.log.append_text("delta", turn, f"t{self.log.head} ")

    def end(self, turn: int = 1) -> None:
        self.log.append(UsageEvent, turn=turn, **USAGE)
        self.log.compact_soon()

    async def commit(self) -> None:
        write = self.log.take_write()
        await self.store.commit([write], 0.0)
        self.log.committed(write)

    async def again(self) -> "Made":
        meta = await self.store.meta(self.log.key)
        assert meta is not None
        return Made(self.store, meta)


def receipt(name: str) -> Receipt:
    return Receipt(principal="p", id=name, digest=b"", reply=b"", at=1.0)


def made(**members: Any) -> Made:
    return Made(FaultyStore(**members))
