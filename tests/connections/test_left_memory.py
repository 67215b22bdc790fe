"""What is done with is gone at once, and does not wait for a garbage collection.

A full collection comes once a minute, and a conversation holds megabytes.
"""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.connections.journal import settle
from tests.connections.wire import connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from wsserver.engine.model import Call, Finished, Text
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.running import RunningTurn

TOOLS = {"tools": [{"name": "look"}]}
CALL = Call(upstream_id="u1", name="look", arguments="{}", valid=True)
CALLS: list[Step] = [[Finished(reason="tool_calls", calls=[CALL])]]
ENDLESS: list[Step] = [[Text("first")], 1000.0]


EARLIER: list[object] = []
"""What other tests have left behind."""


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.collect()
    EARLIER[:] = _all()
    gc.disable()
    yield
    gc.enable()
    EARLIER.clear()


def in_memory() -> list[str]:
    earlier = set(map(id, EARLIER))
    return [type(found).__name__ for found in _all() if id(found) not in earlier]


def _all() -> list[object]:
    return [o for o in gc.get_objects() if type(o) in (ConversationLog, RunningTurn)]


@pytest.mark.parametrize("end", ["close", "delete", "leave"])
@pytest.mark.parametrize("members", [{}, {"max_delay_ms": 100}, {"window_bytes": 9000}])
async def test_a_conversation_that_nobody_has_open(
    end: str, members: dict[str, Any]
) -> None:
    provider = ScriptedProvider(CALLS, says("word " * 100), ENDLESS)
    async with rig(provider) as r, connected(r) as client:
        await client.ask(
            "open", conversation="c", config=TOOLS, handles=["look"], **members
        )
        await client.ask("send", conversation="c", content="hi")
        call = (await client.frame("tool_request"))["call"]
        await client.ask("tool_result", conversation="c", call=call, output="seen")
        await client.frame("done")
        await client.ask("send", conversation="c", content="and on")
        await client.ask("interrupt", conversation="c")
        assert in_memory()
        if end == "leave":
            client.wire.cut(1001)
        else:
            await client.ask(end, conversation="c")
        await r.committer.flush()
        await settle()
        assert r.directory.statistics() == (0, 0)
        assert in_memory() == []
