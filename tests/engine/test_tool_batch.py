"""The calls of a turn: six outcomes, deadlines, redelivery."""

from typing import Any

import pytest

from protocol.content import Tool
from tests.engine.machine import TOOLS, TURN, asks, call_id, weather, words
from wsserver.engine.deadlines import NEVER
from wsserver.engine.model import Call
from wsserver.engine.tools import INVALID_SHOWN, Batch, ToolTimes


def batch(**members: Any) -> Batch:
    made = {"tools": TOOLS, "times": ToolTimes(), "max_argument_bytes": 1000}
    return Batch(TURN, **{**made, **members})


def asked(*calls: Any, now: float = 0.0, **members: Any) -> Batch:
    made = batch(**members)
    made.ask(asks(*calls).calls, now, 1_000.0)
    return made


def settle(made: Batch, output: Any, *, call: str = "", status: Any = "ok") -> str:
    return made.settle(call or call_id(), status, output, "alice")[0]


def test_the_first_result_wins_and_others_are_told_what_became_of_them() -> None:
    made = asked()
    assert settle(made, {"a": 1, "b": 2}) == "accepted"
    assert settle(made, {"b": 2, "a": 1}) == "duplicate", "order of members is none"
    assert settle(made, {"a": 2}) == "conflict"
    assert settle(made, {"a": 1, "b": 2}, status="error") == "conflict"
    assert settle(made, 1, call="call_7.9") == "unknown"
    assert settle(made, 1, call="call_8.0") == "unknown"


def test_a_result_after_time_ran_out_is_late() -> None:
    made = asked()
    assert words(made.expire(119.9)) == ""
    assert words(made.expire(120.0)) == "tool_result:timeout"
    assert settle(made, 1) == settle(made, 1) == "late"


def test_a_result_after_an_interrupt_is_told_so() -> None:
    made = asked()
    assert words(made.cancel()) == "tool_result:cancelled"
    assert settle(made, 1) == settle(made, 1) == "cancelled"


@pytest.mark.parametrize(
    ("settle_all", "told"),
    [
        (lambda made: made.expire(120.0), "The tool did not answer in time."),
        (
            lambda made: made.cancel(),
            "The call was cancelled before it gave a result.",
        ),
    ],
)
def test_the_model_is_told_why_there_is_no_result(settle_all: Any, told: str) -> None:
    made = asked(weather(0), weather(1))
    members = [action.members for action in settle_all(made)]
    assert [m["call"] for m in members] == [call_id(0), call_id(1)]
    assert {(m["output"], m["by"]) for m in members} == {(told, "server")}


@pytest.mark.parametrize("output", [None, 2**70, -1.5, "x", [1, [2]], {"ä": []}, ""])
def test_any_json_is_an_output(output: Any) -> None:
    made = asked()
    assert settle(made, output) == "accepted"
    assert settle(made, output) == "duplicate"


def test_a_call_that_was_never_shown_can_have_no_result() -> None:
    made = batch()
    bad = weather(arguments="{", valid=False)
    [action] = made.ask(asks(bad).calls, 0.0, 0.0)
    assert words([action]) == "tool_result:invalid"
    assert settle(made, 1) == "unknown"


@pytest.mark.parametrize(
    ("call", "note"),
    [
        ({"arguments": "{", "valid": False}, "valid JSON"),
        ({"arguments": "[" * 65 + "]" * 65}, "valid JSON"),
        ({"arguments": '{"a":"\\ud800"}'}, "valid JSON"),
        ({"arguments": '"' + "é" * 500 + '"'}, "longer than 1000 bytes"),
        ({"name": "rocket"}, "no tool 'rocket'"),
        ({"name": ""}, "names no tool"),
        ({"arguments": '{"place":1}'}, "$['place']: 1 is not of type"),
        ({"arguments": "[]"}, 'not of type "object"'),
    ],
)
def test_what_can_not_be_run_is_never_shown_as_a_call(
    call: dict[str, Any], note: str
) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    tools = {"weather": Tool(name="weather", parameters=schema)}
    made = batch(tools=tools)
    good = weather(0, arguments='{"place":"Rome"}')
    actions = made.ask(asks(good, weather(1, **call)).calls, 0.0, 0.0)
    assert words(actions) == "tool_call tool_result:invalid ask"
    members = actions[1].members  # type: ignore[union-attr]
    assert note in members["output"]
    assert members["invalid"].upstream_id == "up1"
    assert (members["invalid"].batch, members["invalid"].index) == (0, 1)
    assert members["by"] == "server"
    assert list(made.open) == [call_id(0)]


def test_only_the_beginning_of_what_can_not_be_run_is_kept() -> None:
    made = batch()
    long = weather(arguments="{" * 5000, valid=False)
    [action] = made.ask(asks(long).calls, 0.0, 0.0)
    assert len(action.members["invalid"].arguments) == INVALID_SHOWN  # type: ignore[union-attr]


def test_no_frame_has_to_carry_an_endless_name_or_id() -> None:
    made = batch()
    long = Call(upstream_id="u" * 9999, name="n" * 9999, arguments="{}", valid=True)
    [action] = made.ask(asks(long).calls, 0.0, 0.0)
    invalid = action.members["invalid"]  # type: ignore[union-attr]
    assert len(invalid.name) < 200
    assert len(invalid.upstream_id) < 600
    fine = Call(upstream_id="u" * 9999, name="weather", arguments="{}", valid=True)
    [shown, _] = made.ask(asks(fine).calls, 0.0, 0.0)
    assert len(shown.members["upstream_id"]) < 600  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("members", "seconds"),
    [
        ({}, 120.0),
        ({"timeout_s": 5}, 5.0),
        ({"timeout_s": 0.5}, 0.5),
        ({"timeout_s": None}, 86_400.0),
        ({"timeout_s": 86_400}, 86_400.0),
    ],
)
def test_how_long_a_call_may_take(members: dict[str, Any], seconds: float) -> None:
    made = batch(tools={"weather": Tool(name="weather", **members)})
    [shown, _] = made.ask(asks().calls, 50.0, 0.0)
    assert made.deadline() == 50.0 + seconds
    assert shown.members["deadline_at"].endswith("Z")  # type: ignore[union-attr]
    if seconds == 120.0:
        assert shown.members["deadline_at"] == "1970-01-01T00:02:00.000Z"  # type: ignore[union-attr]


def test_progress_extends_up_to_the_ceiling_and_never_shortens() -> None:
    made = asked(times=ToolTimes(default_seconds=10.0, ceiling_seconds=25.0))
    assert made.deadline() == 10.0
    assert made.progress(call_id(), 4.0)
    assert made.deadline() == 14.0
    for now in (12.0, 14.0, 20.0):
        made.progress(call_id(), now)
    assert made.deadline() == 25.0
    made.deliver(call_id(), 24.0)
    made.deliver(call_id(), 24.0)
    assert made.deadline() == 54.0, "a redelivery leaves 30 s"
    made.progress(call_id(), 24.5)
    assert made.deadline() == 54.0
    assert not made.progress("call_7.9", 1.0)


def test_a_delivery_says_what_is_left_and_a_redelivery_leaves_thirty_seconds() -> None:
    made = asked()
    first = made.deliver(call_id(), 30.0)
    assert first is not None
    assert (first.left_ms, first.again, first.name) == (90_000, False, "weather")
    again = made.deliver(call_id(), 60.0)
    assert again is not None
    assert (again.left_ms, again.again) == (60_000, True)
    third = made.deliver(call_id(), 119.0)
    assert third is not None
    assert (third.left_ms, third.again) == (30_000, True)
    assert made.deadline() == 149.0
    settle(made, 1)
    assert made.deliver(call_id(), 120.0) is None


def test_a_first_delivery_that_comes_late_leaves_what_there_is() -> None:
    made = asked()
    first = made.deliver(call_id(), 119.0)
    assert first is not None
    assert first.left_ms == 1000


def test_the_next_deadline_is_the_earliest_of_the_open_calls() -> None:
    tools = {**TOOLS, "clock": Tool(name="clock", timeout_s=7)}
    made = asked(weather(0), weather(1, name="clock"), tools=tools)
    assert made.deadline() == 7.0
    settle(made, 1, call=call_id(1))
    assert made.deadline() == 120.0
    settle(made, 1)
    assert made.deadline() == NEVER
