"""The times of a turn, as the machine takes them."""

from protocol.content import Timing
from tests.engine.machine import OVERLOADED, asks, call_id, machine
from wsserver.engine.actions import Action, AppendDone
from wsserver.engine.model import Answering, Finished, Text
from wsserver.engine.turn import Turn


def told(actions: list[Action]) -> Timing:
    done = actions[-1]
    assert isinstance(done, AppendDone)
    return done.members["timing"]


def stop(turn: Turn, now: float) -> Timing:
    return told(turn.finished(Finished(reason="stop"), now, now, 0.5))


def test_a_turn_with_a_tool_from_its_message_to_its_end() -> None:
    turn = machine(accepted_at=0.0, now=1.0)
    turn.called(9, 2.0)
    turn.connected(3.0)
    for now in (4.0, 5.0):
        turn.feed([Text("a")], now)
    turn.finished(asks(), 6.0, 6.0, 0.5)
    turn.tool_result(call_id(), "ok", "x", "alice", 16.0)
    turn.called(9, 17.0)
    for now in (18.0, 20.0):
        turn.feed([Text("a")], now)
    assert turn.first_token_seconds == 4.0
    assert stop(turn, 21.0) == Timing(
        queue_ms=1_000,
        upstream_ttft_ms=2_000,
        ttft_ms=4_000,
        tpot_ms=(1 + 2) / 2 * 1_000,
        tokens_per_s=0.67,
        tool_ms=10_000,
        total_ms=21_000,
    )


def test_the_upstream_is_timed_from_the_request_that_it_answered() -> None:
    turn = machine()
    turn.called(9, 1.0)
    turn.refused(OVERLOADED, 2.0, 0.5)
    turn.time(3.0)
    turn.called(9, 5.0)
    turn.feed([Text("a")], 7.5)
    timing = stop(turn, 8.0)
    assert (timing.upstream_ttft_ms, timing.ttft_ms) == (2_500, 7_500)


def test_a_model_that_took_over_is_timed_from_when_it_was_asked_itself() -> None:
    turn = machine()
    turn.called(9, 1.0)
    turn.feed([Answering("other", 2.0, "upstream_unavailable"), Text("a")], 7.5)
    timing = stop(turn, 8.0)
    assert (timing.upstream_ttft_ms, timing.ttft_ms) == (2_000, 7_500)
