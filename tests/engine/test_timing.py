"""Times to the first token, between tokens, in tools, in all (rule S15)."""

from protocol.content import TextProof, Timing
from protocol.events import DoneEvent, UsageEvent
from wsserver.engine.timing import Stopwatch, in_one_lump


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


def lump(
    *,
    status: str = "completed",
    wait_ms: float | None = 900.0,
    tpot_ms: float | None = None,
    tokens: int = 100,
    reasoning: int | None = None,
) -> bool:
    timing = Timing(
        queue_ms=0, upstream_ttft_ms=wait_ms, tpot_ms=tpot_ms, total_ms=1000
    )
    usage = UsageEvent(
        conversation="c", seq=8, turn=2, input_tokens=1, output_tokens=tokens,
        reasoning_tokens=reasoning, estimated=False, model_calls=1,
    )  # fmt: skip
    end = DoneEvent(
        conversation="c", seq=9, turn=2, status=status, timing=timing,  # pyright: ignore[reportArgumentType]
        text=TextProof(bytes=0, crc32=0),
    )  # fmt: skip
    return in_one_lump(end, usage)


def test_an_answer_whose_tokens_all_came_at_once_after_a_wait_is_a_lump() -> None:
    """L-18."""
    assert lump()
    assert lump(tpot_ms=0.05), "in a few reads right after each other"
    assert not lump(tpot_ms=0.5), "that was streamed, if fast"
    assert not lump(tpot_ms=20.0)
    assert not lump(wait_ms=100.0), "it came soon"
    assert not lump(wait_ms=None)
    assert not lump(tokens=15), "it is short"
    assert not lump(tokens=100, reasoning=90), "what is seen of it is short"
    assert not lump(status="incomplete")


def test_a_lump_at_the_edge_of_what_is_one() -> None:
    assert lump(wait_ms=250.0)
    assert not lump(wait_ms=249.9)
    assert lump(tokens=16)
    streamed_ms = 100 * 0.1
    assert lump(tpot_ms=streamed_ms / 99)
    assert not lump(tpot_ms=streamed_ms / 98.5)
