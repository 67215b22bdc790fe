"""Times to the first token, between tokens, in tools, in all (rule S15)."""

from wsserver.engine.timing import Stopwatch


def test_a_plain_turn() -> None:
    watch = Stopwatch(accepted_at=10.0, started_at=10.5)
    watch.called(11.0)
    for now in (12.0, 12.5, 13.0, 14.0):
        watch.token(now)
    assert watch.first_token_seconds == 2.0
    timing = watch.timing(15.0, output_tokens=5)
    assert timing.queue_ms == 500.0
    assert timing.upstream_ttft_ms == 1000.0
    assert timing.ttft_ms == 2000.0
    assert timing.tpot_ms == (14.0 - 12.0) / (5 - 1) * 1000
    assert timing.tokens_per_s == 2.0
    assert timing.total_ms == 5000.0
    assert timing.tool_ms is None
    assert timing.stop_ms is None


def test_no_token_has_no_first_and_one_has_no_pace() -> None:
    watch = Stopwatch(accepted_at=0.0, started_at=0.0)
    watch.called(0.0)
    assert watch.first_token_seconds is None
    timing = watch.timing(1.0, 0)
    assert timing.ttft_ms is timing.upstream_ttft_ms is timing.tpot_ms is None
    watch.token(2.0)
    assert watch.timing(3.0, 1).tpot_ms is None
    assert watch.timing(3.0, 1).ttft_ms == 2000.0


def test_tools_do_not_count_as_slow_tokens() -> None:
    watch = Stopwatch(accepted_at=0.0, started_at=0.0)
    for begin in (1.0, 101.0):
        watch.called(begin)
        watch.token(begin + 1)
        watch.token(begin + 2)
        watch.call_ended()
        watch.tools_began(begin + 2)
        watch.tools_ended(begin + 42)
    timing = watch.timing(150.0, output_tokens=6)
    assert timing.tool_ms == 80_000.0
    assert timing.tpot_ms == 2.0 / (6 - 2) * 1000
    assert timing.upstream_ttft_ms == 1000.0, "of the first model call"
    assert timing.ttft_ms == 2000.0


def test_only_the_request_that_gave_the_first_token_counts_for_the_upstream() -> None:
    watch = Stopwatch(accepted_at=0.0, started_at=0.0)
    watch.called(1.0)
    watch.call_ended()
    watch.called(9.0)
    watch.token(10.0)
    timing = watch.timing(11.0, 1)
    assert (timing.upstream_ttft_ms, timing.ttft_ms) == (1000.0, 10_000.0)


def test_a_turn_that_ends_while_tools_are_awaited() -> None:
    watch = Stopwatch(accepted_at=0.0, started_at=0.0)
    watch.tools_began(1.0)
    watch.stopped(3.0)
    timing = watch.timing(3.5, 0)
    assert (timing.tool_ms, timing.stop_ms) == (2500.0, 500.0)
