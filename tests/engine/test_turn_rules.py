"""The turn machine: rules that span several inputs."""

from typing import Any

import pytest
from msgspec import Raw

from protocol.content import TextProof, Tool
from tests.engine.machine import (
    OVERLOADED,
    PHASES,
    TOOLS,
    asks,
    call_id,
    connecting,
    machine,
    waiting_tools,
    weather,
    words,
)
from wsserver.engine.actions import AppendDone, AppendText
from wsserver.engine.deadlines import NEVER, Patience
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import (
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
    Usage,
)
from wsserver.engine.turn import Turn


def texts(turn: Turn, *events: ModelEvent) -> list[tuple[str, str]]:
    found = turn.feed(list(events), 1.0)
    return [(a.kind, a.text) for a in found if isinstance(a, AppendText)]


def finish(turn: Turn, reason: Any = "stop", now: float = 1.0) -> str:
    return words(turn.finished(Finished(reason=reason), now, now, 0.5))


def ask(turn: Turn, *calls: Any, now: float = 1.0) -> str:
    return words(turn.finished(asks(*calls), now, now, 0.5))


def test_neighbours_of_one_kind_become_one_and_order_stays() -> None:
    turn = machine()
    PHASES["connecting"](turn)
    fragment = CallFragment(0, "weather", "{")
    assert texts(
        turn,
        Text("a"),
        Text("b"),
        Reasoning("c"),
        Text("d"),
        Refusal("e"),
        Refusal("f"),
        fragment,
        fragment,
        Text("g"),
        Finished(reason="stop"),
    ) == [
        ("delta", "ab"),
        ("reasoning", "c"),
        ("delta", "d"),
        ("refusal", "ef"),
        ("tool_delta", "{"),
        ("tool_delta", "{"),
        ("delta", "g"),
    ]


def test_a_fragment_names_its_call_and_an_empty_one_is_no_token() -> None:
    turn = machine()
    PHASES["waiting_first_token"](turn)
    assert turn.feed([CallFragment(0, "", "")], 1.0) == []
    assert turn.phase == "waiting_first_token"
    assert turn.feed([CallFragment(1, 'we"other_', "")], 2.0) == []
    assert turn.first_token_seconds == 2.0, "a name is a token that shows nothing"
    [action] = turn.feed([CallFragment(1, 'we"other_', "{")], 3.0)
    assert isinstance(action, AppendText)
    assert action.attrs == b'"call":"call_7.1","name":"we\\"other_",'
    [action] = turn.feed([CallFragment(2, "", "{")], 4.0)
    assert isinstance(action, AppendText)
    assert (action.text, action.attrs) == ("{", b'"call":"call_7.2","name":"",')


def test_calls_of_all_rounds_have_ids_of_their_own() -> None:
    turn = machine()
    ids: list[str] = []
    for _ in range(3):
        turn.called(9, 0.0)
        turn.feed([CallFragment(1, "weather", "{")], 0.0)
        ask(turn, weather(0), weather(1, arguments="[", valid=False), weather(2))
        ids += turn.tools.open
        for call in list(turn.tools.open):
            turn.tool_result(call, "ok", "x", "alice", 1.0)
    assert ids == [call_id(n) for n in (0, 2, 3, 5, 6, 8)]


def test_retries_stop_after_three_attempts_and_begin_anew_after_tools() -> None:
    turn = machine()
    for _ in range(2):
        for attempt in (1, 2):
            turn.called(9, 0.0)
            assert turn.refused(OVERLOADED, 0.0, 0.0) == [], attempt
            assert turn.phase == "retry_wait"
            assert words(turn.time(0.0)) == "call"
        turn.called(9, 0.0)
        ask(turn)
        number = len(turn.tools._settled)
        turn.tool_result(call_id(number), "ok", "x", "alice", 0.0)
    for _ in range(2):
        turn.called(9, 0.0)
        turn.refused(OVERLOADED, 0.0, 0.0)
        turn.time(0.0)
    turn.called(9, 0.0)
    assert words(turn.refused(OVERLOADED, 0.0, 0.0)).endswith("done:failed")


def test_a_retry_waits_as_long_as_the_upstream_asks() -> None:
    turn = machine()
    connecting(turn)
    asked = Failure(
        code="upstream_rate_limited",
        message="",
        retryable=True,
        retry_after_seconds=5.0,
    )
    turn.refused(asked, 1.0, 0.0)
    assert turn.deadline() == 6.0
    assert turn.time(5.99) == []
    assert words(turn.time(6.0)) == "call"


def test_an_error_in_the_stream_is_retried_only_while_nothing_was_shown() -> None:
    error = Finished(reason="error", failure=OVERLOADED)
    for event, phase in [
        (Text("a"), "ended"),
        (Reasoning("a"), "ended"),
        (Refusal("a"), "ended"),
        (CallFragment(0, "f", ""), "ended"),
        (None, "retry_wait"),
    ]:
        turn = machine()
        connecting(turn)
        turn.feed([] if event is None else [event], 1.0)
        turn.finished(error, 1.0, 1.0, 0.5)
        assert turn.phase == phase, event


def test_what_was_shown_before_an_error_is_counted() -> None:
    turn = machine()
    connecting(turn)
    turn.feed([Text("some"), Text("thing")], 1.0)
    end = Finished(reason="error", failure=OVERLOADED)
    usage = turn.finished(end, 1.0, 1.0, 0.5)[0].members  # type: ignore[union-attr]
    assert (usage["output_tokens"], usage["estimated"]) == (3, True)


def test_text_shown_by_an_earlier_model_call_does_not_forbid_a_retry() -> None:
    turn = machine()
    waiting_tools(turn)
    turn.tool_result(call_id(), "ok", "x", "alice", 1.0)
    turn.called(9, 1.0)
    turn.refused(OVERLOADED, 1.0, 0.5)
    assert turn.phase == "retry_wait"


@pytest.mark.parametrize(
    ("limits", "rounds"), [({"rounds": 2}, 3), ({"calls": 3}, 4), ({}, 17)]
)
def test_rounds_and_calls_are_limited(limits: dict[str, int], rounds: int) -> None:
    turn = machine(limits=TurnLimits(**limits))
    for number in range(rounds - 1):
        turn.called(9, 0.0)
        assert ask(turn) == "tool_call ask"
        turn.tool_result(call_id(number), "ok", "x", "alice", 1.0)
    turn.called(9, 0.0)
    assert ask(turn) == "usage error:too_many_tool_rounds done:failed"


def test_text_of_all_kinds_is_limited_in_bytes() -> None:
    turn = machine(limits=TurnLimits(turn_bytes=8))
    connecting(turn)
    assert words(turn.feed([Text("ab"), Reasoning("é")], 1.0)) == "delta reasoning"
    assert words(turn.feed([CallFragment(0, "f", "日1")], 1.0)) == "tool_delta"
    assert words(turn.feed([Text("x")], 1.0)) == "delta close"
    assert turn.finished(Finished(reason="stop"), 1.0, 1.0, 0.5) == []
    assert words(turn.closed(1.0)) == "usage error:response_too_large done:failed"


def test_the_first_cut_counts_whatever_stopped_the_turn() -> None:
    cut = {"keep_through": 9, "text": TextProof(bytes=0, crc32=0)}
    turn = machine()
    PHASES["streaming"](turn)
    turn.fail(OVERLOADED, 1.0)
    stop: dict[str, Any] = {"reason": "by_client", "by": "alice", "now": 1.0}
    assert words(turn.stop(**stop, cut=cut)) == "cut"
    assert not turn.interrupted
    assert turn.stop(**stop, cut=cut) == []
    assert words(turn.closed(1.0)).endswith("done:failed")
    assert turn.stop(**stop, cut=cut) == []


def test_nothing_that_comes_after_a_call_has_ended_counts_for_the_next() -> None:
    turn = machine()
    connecting(turn)
    ask(turn, weather(arguments="{", valid=False))
    assert (turn.phase, turn.calling) == ("connecting", False)
    assert turn.feed([Text("late")], 1.0) == []
    assert finish(turn) == ""
    assert turn.refused(OVERLOADED, 1.0, 0.5) == []
    turn.connected(1.0)
    assert turn.phase == "connecting"


def test_results_of_a_batch_are_awaited_in_any_order() -> None:
    turn = machine()
    connecting(turn)
    said = ask(turn, weather(0), weather(1), weather(2))
    assert said == "tool_call tool_call tool_call ask ask ask"
    for number in (2, 0):
        outcome, actions = turn.tool_result(call_id(number), "ok", "x", "alice", 2.0)
        assert (outcome, words(actions)) == ("accepted", "tool_result:ok")
    outcome, actions = turn.tool_result(call_id(1), "error", "no", "alice", 2.0)
    assert (outcome, words(actions)) == ("accepted", "tool_result:error call")


def test_a_call_that_runs_out_of_time_does_not_take_the_others_with_it() -> None:
    slow = Tool(name="clock", timeout_s=300)
    turn = machine(tools={"weather": TOOLS["weather"], "clock": slow})
    connecting(turn)
    ask(turn, weather(0), weather(1, name="clock"), now=0.0)
    assert turn.deadline() == 120.0
    assert words(turn.time(120.0)) == "tool_result:timeout"
    assert turn.deadline() == 300.0
    assert words(turn.time(300.0)) == "tool_result:timeout call"


def test_waiting_for_tools_is_not_time_of_the_turn() -> None:
    approval = Tool(name="weather", timeout_s=None)
    turn = machine(tools={"weather": approval})
    connecting(turn)
    ask(turn, now=100.0)
    assert turn.time(80_000.0) == []
    turn.tool_result(call_id(), "ok", "yes", "alice", 80_000.0)
    turn.called(9, 80_000.0)
    turn.feed([Text("a")], 80_499.0)
    assert turn.time(80_499.0) == []
    assert words(turn.time(80_500.0)) == "close"
    assert words(turn.closed(80_500.0)) == "usage done:incomplete/turn_timeout"


def test_viewers_are_told_each_ten_seconds_of_each_model_call() -> None:
    turn = machine(accepted_at=-3.0)
    connecting(turn)
    turn.connected(1.0)
    [waiting] = turn.time(10.0)
    assert waiting.elapsed_ms == 13_000  # type: ignore[union-attr]
    assert turn.time(19.0) == []
    assert words(turn.time(20.0)) == "waiting:waiting_first_token"
    ask(turn, now=25.0)
    assert turn.time(60.0) == []
    turn.tool_result(call_id(), "ok", "x", "alice", 60.0)
    turn.called(9, 60.0)
    assert turn.time(69.0) == []
    [waiting] = turn.time(70.0)
    assert waiting.elapsed_ms == 10_000  # type: ignore[union-attr]


def test_comments_of_the_upstream_put_silence_off() -> None:
    turn = machine()
    connecting(turn)
    for now in range(5, 300, 20):
        turn.feed([], float(now))
        assert turn.phase == "connecting"
        if now % 10:
            turn.time(float(now))
    assert words(turn.time(285.0 + 29.0)).startswith("waiting")
    assert words(turn.time(285.0 + 30.0)) == "close"
    assert words(turn.closed(316.0)) == "usage error:upstream_timeout done:failed"


def test_a_stream_that_goes_on_is_not_stalled() -> None:
    turn = machine(limits=TurnLimits(patience=Patience(idle_seconds=2.0)))
    connecting(turn)
    for now in range(50):
        turn.feed([Text("a")], float(now))
        assert turn.time(float(now)) == []
    assert turn.deadline() == 51.0


def test_coming_back_in_time_is_enough() -> None:
    turn = machine()
    PHASES["streaming"](turn)
    turn.detached(5.0, 1.0)
    assert turn.deadline() == 6.0
    turn.attached()
    assert turn.time(6.0) == []
    turn.detached(None, 7.0)
    assert turn.time(29.0) == []
    turn.detached(0.0, 7.0)
    assert words(turn.time(7.0)) == "close"


def test_an_ended_turn_has_nothing_due() -> None:
    turn = machine()
    PHASES["ended"](turn)
    assert turn.deadline() == NEVER
    assert turn.time(1e9) == []


def test_usage_of_an_interrupted_turn_is_counted_here_and_says_so() -> None:
    turn = machine()
    turn.called(400, 0.0)
    turn.feed([Text("one"), Text("two")], 1.0)
    turn.stop(reason="by_client", by="alice", now=1.0)
    usage = turn.closed(1.5)[0].members  # type: ignore[union-attr]
    assert usage["output_tokens"] == 2
    assert usage["input_tokens"] == 100
    assert usage["estimated"] is True
    assert usage["model_calls"] == 1


def test_an_interrupt_makes_an_estimate_of_what_was_reported_before() -> None:
    turn = machine()
    connecting(turn)
    known = Usage(input_tokens=5, output_tokens=3)
    end = Finished(reason="tool_calls", calls=(weather(),), usage=known)
    turn.finished(end, 1.0, 1.0, 0.5)
    usage = turn.stop(reason="by_client", by="alice", now=2.0)[1].members  # type: ignore[union-attr]
    assert (usage["input_tokens"], usage["estimated"]) == (5, True)


def test_a_failure_that_no_catalogue_knows_becomes_a_known_one() -> None:
    turn = machine()
    connecting(turn)
    strange = Failure(code="martians", message="they came", retryable=False)
    said = words(turn.refused(strange, 1.0, 0.5))
    assert said == "usage error:upstream_error done:failed"


@pytest.mark.parametrize("reason", ["by_client", "abandoned", "superseded"])
def test_only_interrupts_have_a_time_to_stop(reason: Any) -> None:
    for given, has in [(reason, True), ("turn_timeout", False)]:
        turn = machine()
        PHASES["streaming"](turn)
        turn.stop(reason=given, by="alice", now=1.0)
        done = turn.closed(1.25)[-1]
        assert isinstance(done, AppendDone)
        assert (done.members["timing"].stop_ms == 250.0) is has


def test_the_answer_is_held_against_the_schema_that_was_asked_for() -> None:
    schema = {"type": "object", "required": ["place"]}
    for said, end in [
        (['{"place":', ' "Rome"}'], "usage done:completed"),
        (['{"city": 1}'], "usage error:schema_mismatch done:failed"),
        (["Rome"], "usage error:schema_mismatch done:failed"),
        ([], "usage error:schema_mismatch done:failed"),
    ]:
        turn = machine(response_schema=schema)
        connecting(turn)
        turn.feed([Text("before")], 0.5)
        ask(turn)
        turn.tool_result(call_id(), "ok", "x", "alice", 1.0)
        turn.called(9, 1.0)
        for text in said:
            turn.feed([Reasoning("hm"), Text(text)], 1.0)
        assert finish(turn) == end, said


def test_what_is_not_complete_is_not_held_against_the_schema() -> None:
    turn = machine(response_schema={"type": "object"})
    connecting(turn)
    turn.feed([Text("{")], 1.0)
    assert finish(turn, "length") == "usage done:incomplete/max_output_tokens"
    turn = machine(response_schema={"type": "object"})
    connecting(turn)
    turn.feed([Refusal("No.")], 1.0)
    assert finish(turn) == "usage done:completed"


def test_arguments_reach_the_client_as_they_were_written() -> None:
    turn = machine()
    connecting(turn)
    written = ' {"n": 123456789012345678901234567890, "x": 1.10}\n'
    [shown, _] = turn.finished(asks(weather(arguments=written)), 1.0, 1.0, 0.5)
    exact = Raw(written.strip().encode())
    assert bytes(shown.members["arguments"]) == bytes(exact)  # type: ignore[union-attr]
    delivery = turn.tools.deliver(call_id(), 1.0)
    assert delivery is not None
    assert bytes(delivery.arguments) == bytes(exact)
