"""Lines about a turn: of which conversation, turn, request and connection it is."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import NoReturn

import pytest
from structlog.contextvars import (
    bind_contextvars,
    bound_contextvars,
    merge_contextvars,
)
from structlog.testing import capture_logs

from protocol.events import StartEvent
from tests.fakes.rig import done, events, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.served import FakeTools, begun, calling, named, raises
from tests.turns.talk import settled, talking
from wsserver.engine.model import Failure, ModelEvent, ModelRequest, Text

REFUSED = Failure(code="upstream_rejected", message="", retryable=False)


async def test_the_lines_of_a_turn_have_its_ids_also_when_it_waited() -> None:
    async with talking([[Text("a")], 5.0, *says("b")], [REFUSED]) as talk:
        other = talk.join("c2")
        with capture_logs(processors=[merge_contextvars]) as lines:
            # As in a connection's task, which starts the turns that can start at once.
            with bound_contextvars(connection="c1"):
                talk.send()
                await settled()
            with bound_contextvars(connection="c2"):
                talk.send(viewer=other)
            await talk.done()
        starts = [event for event in await talk.log() if isinstance(event, StartEvent)]
        expected = [
            {
                "key": talk.conversation.log.key,
                "turn": start.turn,
                "request": start.request_id,
                "connection": connection,
            }
            for start, connection in zip(starts, ("c1", "c2"), strict=True)
        ]
        for name in ("turn_started", "turn_done"):
            assert [
                {id_: line.get(id_) for id_ in expected[0]}
                for line in lines
                if line["event"] == name
            ] == expected
        [refused] = [line for line in lines if line["event"] == "upstream_refused"]
        assert refused.items() >= expected[1].items()
        assert refused["model"] == starts[1].model
        assert "address" in refused, "of several upstreams it says which"


async def test_the_line_of_a_turn_that_did_not_begin_has_no_ids_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(space: str) -> NoReturn:
        raise RuntimeError(space)

    async with talking([[Text("a")], 5.0, *says("b")]) as talk:
        other = talk.join("c2")
        talk.send()
        talk.send(viewer=other)
        monkeypatch.setattr(talk.rig.services.running, "began", broken)
        with capture_logs(processors=[merge_contextvars]) as lines:
            await talk.done()
        starts = [event for event in await talk.log() if isinstance(event, StartEvent)]
        [line] = [line for line in lines if line["event"] == "turn_not_started"]
        assert (line["turn"], line["connection"]) == (starts[1].turn, "c2")
        assert line["request"] == starts[1].request_id


class ElsewhereProvider:
    """Gives what it reads in a context that has another turn's ids."""

    def __init__(self, *scripts: list[Step]) -> None:
        self._scripted = ScriptedProvider(*scripts)

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator["ElsewhereProvider"]:
        async with self._scripted.stream(request) as self._batches:
            yield self

    async def pump(self, sink: Callable[[Sequence[ModelEvent]], None]) -> None:
        elsewhere = Context()
        elsewhere.run(bind_contextvars, turn=0, request="another's", connection="c0")
        await self._batches.pump(lambda events: elsewhere.run(sink, events))


async def test_so_have_the_lines_of_a_tool_that_the_server_runs_for_it() -> None:
    provider = ElsewhereProvider(calling("add"), says("a"))
    async with rig(provider) as r:
        with capture_logs(processors=[merge_contextvars]) as lines:
            tools = FakeTools(add=raises(RuntimeError("a fault of the tool")))
            conversation, _ = await begun(r, tools, *named("add"))
            await done(conversation)
        [start] = [e for e in await events(conversation) if isinstance(e, StartEvent)]
    [failed] = [line for line in lines if line["event"] == "server_tool_failed"]
    assert (failed["turn"], failed["request"]) == (start.turn, start.request_id)
    assert (failed["key"], failed["connection"]) == (conversation.log.key, "c1")
