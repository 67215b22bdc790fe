"""What operators read of turns in the log where something went wrong."""

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import done, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.turns.served import FakeTools, begun, calling, named, raises
from tests.turns.talk import VirtualClock, settled, talking
from wsserver.engine.model import Text
from wsserver.log.store import StoreError
from wsserver.turns.retention import Retention
from wsserver.turns.sweep import EVERY_SECONDS

Lines = Sequence[MutableMapping[str, Any]]


class Broken(ScriptedProvider):
    """Raises what it is given instead of answering."""

    def __init__(self, error: BaseException) -> None:
        super().__init__([])
        self._error = error

    def stream(self, request: Any) -> Any:
        raise self._error


def told(lines: Lines, event: str) -> dict[str, Any]:
    """Returns the only line of an event, without what all lines of a turn have."""
    [line] = [line for line in lines if line["event"] == event]
    return {name: line[name] for name in line if name not in ("event", "exc_info")}


async def test_a_provider_that_raises() -> None:
    with capture_logs() as lines:
        async with talking(provider=Broken(ZeroDivisionError("x"))) as talk:
            talk.send()
            await talk.done()
    assert told(lines, "provider_failed") == {"log_level": "error"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_provider_that_cancels_itself() -> None:
    with capture_logs() as lines:
        async with talking(provider=Broken(asyncio.CancelledError())) as talk:
            talk.send()
            await talk.done()
    assert told(lines, "provider_failed") == {"log_level": "error"}


async def test_a_tool_that_breaks_is_named() -> None:
    with capture_logs() as lines:
        async with rig(ScriptedProvider(calling("bad"), says("ok"))) as r:
            tools = FakeTools(bad=raises(ZeroDivisionError("x")))
            conversation, _ = await begun(r, tools, *named("bad"))
            await done(conversation)
    assert told(lines, "server_tool_failed") == {"log_level": "error", "tool": "bad"}


async def test_a_turn_that_a_crash_cut_off_is_named() -> None:
    store = FaultyStore()
    async with talking([[Text("a")], 1000.0], store=store) as talk:
        turn = talk.send().turn
        await settled()
        await talk.rig.committer.flush()
    with capture_logs() as lines:
        async with rig(ScriptedProvider(), store, clock=VirtualClock()) as r:
            assert await r.directory.recover() == 1
    assert told(lines, "turn_cut_off_by_restart") == {
        "log_level": "warning", "key": "alice/c", "turn": turn
    }  # fmt: skip


async def test_a_sweep_that_the_store_refuses_is_told_each_time() -> None:
    class Shy(FaultyStore):
        async def idle(self, before: float, limit: int) -> list[str]:
            raise StoreError("not now")

    retention = Retention(seconds=100.0)
    with capture_logs() as lines:
        async with (
            talking(store=Shy(), retention=retention) as talk,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(talk.rig.sweep.run)
            await anyio.sleep(1.5 * EVERY_SECONDS)
            tasks.cancel_scope.cancel()
    failed = [line for line in lines if line["event"] == "retention_failed"]
    assert [(line["log_level"], line["error"]) for line in failed] == [
        ("warning", "not now")
    ] * 2
