"""However a turn ends, operators are told once that it began, how it ended, and why."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.content import Tool
from protocol.events import DoneEvent, StartEvent, TurnErrorEvent
from tests.fakes.counted import Recorder
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import Talk, asks, call, settled, talking, until
from tests.turns.test_defects import (
    broken,
    where_it_counts_the_turn,
    where_it_is_counted,
    where_it_proves_the_text,
    where_its_start_is_appended,
    where_models_are_found,
    where_the_conversation_is_told,
)
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import Failure, Finished, Text
from wsserver.turns.services import ConversationLimits

LONG: list[Step] = [[Text("a")], 20.0, [Finished(reason="stop")]]
AUTH = Failure(code="upstream_auth", message="who?", retryable=False)
MADE_UP = Failure(code="made_up", message="odd", retryable=False)

Patch = pytest.MonkeyPatch
Story = Callable[[Talk, Patch], None]


def with_limits(**limits: Any) -> Story:
    def story(talk: Talk, patch: Patch) -> None:
        del patch
        turn = TurnLimits(**limits)
        talk.rig.services.limits = ConversationLimits(turn=turn)
        talk.send()

    return story


def sent(talk: Talk, patch: Patch) -> None:
    del patch
    talk.send()


def a_schema(talk: Talk, patch: Patch) -> None:
    del patch
    talk.configure(response_schema={"type": "object"})
    talk.send()


def a_round_of_tools(talk: Talk, patch: Patch) -> None:
    talk.configure(tools=[Tool(name="weather")])
    with_limits(rounds=0)(talk, patch)


def taken_from_the_queue(talk: Talk, patch: Patch) -> None:
    del patch
    talk.send()
    talk.send(id="two")
    talk.interrupt(send="two")


def taken_back_before(talk: Talk, patch: Patch) -> None:
    del patch
    talk.interrupt(send="early")
    talk.send(id="early")


def a_model_that_is_gone(talk: Talk, patch: Patch) -> None:
    talk.send()
    talk.send()
    patch.setattr(talk.rig.services.models, "resolve", lambda _: None)


def a_defect(breaks: Story) -> Story:
    def story(talk: Talk, patch: Patch) -> None:
        talk.send()
        talk.send()
        breaks(talk, patch)

    return story


def where_its_start_is_told(talk: Talk, patch: Patch) -> None:
    patch.setattr(talk.rig.services.metrics, "turn_started", broken, raising=False)


WELL, INTERNAL = (None,), ("internal",)


@pytest.mark.parametrize(
    ("script", "story", "codes"),
    [
        (LONG, sent, WELL),
        ([AUTH], sent, ["upstream_auth"]),
        ([MADE_UP], sent, ["upstream_error"]),
        ([[Text("a")], [Finished(reason="error")]], sent, ["upstream_error"]),
        ([1000.0], sent, ["upstream_timeout"]),
        (says("no"), a_schema, ["schema_mismatch"]),
        ([[Text("long")]], with_limits(turn_bytes=2), ["response_too_large"]),
        ([asks(call(0))], a_round_of_tools, ["too_many_tool_rounds"]),
        (LONG, taken_from_the_queue, WELL * 2),
        (LONG, taken_back_before, WELL),
        (LONG, a_model_that_is_gone, [None, "upstream_error"]),
        (LONG, a_defect(where_it_counts_the_turn), WELL * 2),
        (LONG, a_defect(where_it_proves_the_text), INTERNAL * 2),
        (LONG, a_defect(where_the_conversation_is_told), WELL * 2),
        (LONG, a_defect(where_models_are_found), (*WELL, *INTERNAL)),
        (LONG, a_defect(where_its_start_is_appended), (*WELL, *INTERNAL)),
        (LONG, a_defect(where_it_is_counted), (*WELL, *INTERNAL)),
    ],
)
async def test_each_end_is_told_once_with_its_code(
    script: list[Step],
    story: Story,
    codes: Sequence[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(script, LONG) as talk:
        metrics = Recorder()
        talk.rig.services.metrics = metrics
        with capture_logs() as lines, monkeypatch.context() as patch:
            story(talk, patch)
            await until(lambda: not talk.conversation.state.live)
            await settled()
        log = await talk.log()
    starts = [event for event in log if isinstance(event, StartEvent)]
    dones = [event for event in log if isinstance(event, DoneEvent)]
    errors = {e.turn: e.code for e in log if isinstance(e, TurnErrorEvent)}
    assert [errors.get(done.turn) for done in dones] == list(codes)

    assert metrics.of("turn_started") == [["test"]] * len(starts)
    assert metrics.of("turn_ended") == [
        ["test", done, errors.get(done.turn)] for done in dones
    ]
    begun = [line for line in lines if line["event"] == "turn_started"]
    assert [(line["turn"], line["request"]) for line in begun] == [
        (start.turn, start.request_id) for start in starts
    ]
    ended = [line for line in lines if line["event"] == "turn_done"]
    assert [
        (line["turn"], line["request"], line["status"], line["reason"], line["code"])
        for line in ended
    ] == [
        (done.turn, start.request_id, done.status, done.reason, errors.get(done.turn))
        for start, done in zip(starts, dones, strict=True)
    ]


async def test_a_start_that_can_not_be_counted_is_an_end_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        metrics = Recorder()
        talk.rig.services.metrics = metrics
        with capture_logs() as lines, monkeypatch.context() as patch:
            where_its_start_is_told(talk, patch)
            talk.send()
            await until(lambda: not talk.conversation.state.live)
    [[_, done, code]] = metrics.of("turn_ended")
    assert (done.status, code) == ("failed", "internal")
    told = [line["event"] for line in lines if line["event"].startswith("turn_")]
    assert told == ["turn_started", "turn_not_started", "turn_done"]


async def test_a_turn_that_a_crash_cut_off_ends_under_its_own_request() -> None:
    store = FaultyStore()
    async with talking([[Text("a")], 1000.0], store=store) as talk:
        talk.send()
        await anyio.sleep(1)
        await talk.rig.committer.flush()
        [start] = [e for e in await talk.log() if isinstance(e, StartEvent)]
        key = talk.conversation.log.key
    async with rig(ScriptedProvider(), store) as r:
        with capture_logs() as lines:
            assert await r.directory.recover() == 1
    [line] = [line for line in lines if line["event"] == "turn_done"]
    ids = {"key": key, "turn": start.turn, "request": start.request_id}
    assert line.items() >= (ids | {"reason": "server_restarted", "code": None}).items()
