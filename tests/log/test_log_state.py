"""The engine's state goes down with each commit, and is asked for when it may differ."""

from collections.abc import Callable

import pytest

from protocol.events import UsageEvent
from tests.fakes.faulty import FaultyStore
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta

NEW = Meta(epoch="e", head=0, oldest=1, live=False, state=b"")
USAGE = {"input_tokens": 1, "output_tokens": 1, "estimated": False, "model_calls": 1}


class Engine:
    """A state that counts how often it is asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self.live = True
        self.log = ConversationLog(
            "s/c", NEW, FaultyStore(), lambda _: None, self._snapshot
        )

    def _snapshot(self) -> tuple[bytes, bool]:
        self.asked += 1
        return b"state %d" % self.asked, self.live

    def written(self) -> Meta:
        meta = self.log.take_write().meta
        assert meta is not None
        return meta


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    assert engine.written().state == b"state 1", "the first commit has it"
    return engine


def test_text_brings_no_other_state(engine: Engine) -> None:
    for head in (1, 2, 3):
        engine.log.append_text("delta", 1, "x")
        meta = engine.written()
        assert (meta.head, meta.state, meta.live) == (head, b"state 1", True)


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.append(UsageEvent, turn=1, **USAGE),
        lambda log: log.touch(),
        lambda log: log.compact_soon(),
        lambda log: log.trim(1),
    ],
    ids=["event", "touch", "compact", "trim"],
)
def test_all_else_may(
    engine: Engine, change: Callable[[ConversationLog], object]
) -> None:
    engine.live = False
    engine.log.append_text("delta", 1, "x")
    change(engine.log)
    engine.log.append_text("delta", 1, "y")
    meta = engine.written()
    assert (meta.state, meta.live) == (b"state 2", False)


def test_a_commit_that_failed_is_written_again_with_it(engine: Engine) -> None:
    engine.log.touch()
    assert engine.written().state == b"state 2"
    engine.log.not_committed()
    engine.log.append_text("delta", 1, "x")
    assert engine.written().state == b"state 2"
