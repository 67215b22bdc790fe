import anyio
import pytest
import trio.testing
from prometheus_client.parser import text_string_to_metric_families

from protocol.content import TextProof, Timing
from protocol.events import DoneEvent, UsageEvent
from wsserver.engine.breaker import Breaker, BreakerPolicy
from wsserver.telemetry.metrics import MAX_MODELS, OTHER, Metrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


STATE = "wsserver_breaker_state"


def jumping_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


def buckets(metrics: Metrics, name: str) -> list[float]:
    """Returns the upper bounds of one series' buckets, without the last."""
    found = [
        sample.labels
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    ]
    series = [{k: v for k, v in one.items() if k != "le"} for one in found]
    first = [
        one["le"] for one, its in zip(found, series, strict=True) if its == series[0]
    ]
    return sorted(map(float, first))[:-1]


def done(**changes: object) -> DoneEvent:
    members: dict[str, object] = {
        "conversation": "c",
        "seq": 9,
        "turn": 2,
        "status": "completed",
        "text": TextProof(bytes=0, crc32=0),
        "timing": Timing(
            queue_ms=1_000,
            upstream_ttft_ms=300,
            tpot_ms=20,
            tokens_per_s=50,
            tool_ms=4_000,
            total_ms=6_500,
        ),
    }
    return DoneEvent(**members | changes)  # pyright: ignore[reportArgumentType]


USAGE = UsageEvent(
    conversation="c",
    seq=8,
    turn=2,
    input_tokens=7,
    output_tokens=70,
    estimated=False,
    model_calls=1,
)


def test_a_turn_is_counted_by_the_conventions_names() -> None:
    metrics = Metrics()
    metrics.name_models([], {"spare": "openai", "m": "local"}.get)
    metrics.turn_started("m")
    metrics.first_token("m", 0.5)
    metrics.turn_ended("m", done(), None)
    metrics.turn_took("m", "spare", done(), USAGE, None)
    gen_ai = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "openai",
        "gen_ai_request_model": "m",
        "gen_ai_response_model": "spare",
    }
    prefix = "gen_ai_client_operation"
    # The model's time: without the queue and the tools.
    assert value(metrics, f"{prefix}_duration_seconds_sum", **gen_ai) == 1.5
    assert value(metrics, f"{prefix}_time_to_first_chunk_seconds_sum", **gen_ai) == 0.3
    tokens = "gen_ai_client_token_usage_sum"
    for kind, expected in [("input", 7), ("output", 70)]:
        labels = gen_ai | {"gen_ai_token_type": kind}
        assert value(metrics, tokens, **labels) == expected
    assert value(metrics, "wsserver_time_to_first_token_seconds_sum", model="m") == 0.5
    assert (
        value(metrics, "wsserver_time_per_output_token_seconds_sum", model="m") == 0.02
    )
    assert value(metrics, "wsserver_tokens_per_second_sum", model="m") == 50
    assert value(metrics, "wsserver_turn_seconds_sum", status="completed") == 6.5
    assert value(metrics, "wsserver_turns_total", status="completed") == 1
    assert value(metrics, "wsserver_turns_started_total", model="m") == 1
    assert value(metrics, "wsserver_turns_in_one_lump_total", model="m") is None


def test_a_turn_without_a_model_call_is_counted_and_says_no_times() -> None:
    metrics = Metrics()
    metrics.turn_ended("m", done(status="incomplete", reason="server_restarted"), None)
    labels = {"model": "m", "status": "incomplete", "reason": "server_restarted"}
    assert value(metrics, "wsserver_turns_total", **labels) == 1
    for name in ("wsserver_turn_seconds_count", "gen_ai_client_token_usage_count"):
        assert value(metrics, name) is None


def test_names_that_clients_make_up_push_no_configured_model_aside() -> None:
    metrics = Metrics()
    metrics.name_models(["mine"], lambda _: "openai")
    for number in range(MAX_MODELS + 1):
        metrics.turn_started(f"made-up-{number}")
    metrics.turn_started("mine")
    started = "wsserver_turns_started_total"
    assert value(metrics, started, model="mine") == 1
    assert value(metrics, started, model=f"made-up-{MAX_MODELS - 1}") == 1
    assert value(metrics, started, model=OTHER) == 1


def test_a_turn_that_failed_says_by_what_and_without_tokens_no_times() -> None:
    metrics = Metrics()
    timing = Timing(queue_ms=5, total_ms=3)
    ended = done(status="incomplete", reason="upstream_stalled", timing=timing)
    metrics.turn_ended("demo/stalling", ended, None)
    metrics.turn_took("demo/stalling", "demo/stalling", ended, USAGE, None)
    duration = "gen_ai_client_operation_duration_seconds_sum"
    assert value(metrics, duration, error_type="upstream_stalled") == 0
    assert value(metrics, duration, gen_ai_provider_name=OTHER) == 0
    assert (
        value(metrics, "gen_ai_client_operation_time_to_first_chunk_seconds_sum")
        is None
    )
    assert value(metrics, "wsserver_turns_total", reason="upstream_stalled") == 1
    for name in ("tokens_per_second", "time_per_output_token_seconds"):
        assert value(metrics, f"wsserver_{name}_count") is None


def test_a_failure_is_counted_by_its_code_and_made_up_ones_are_one() -> None:
    metrics = Metrics()
    failed = done(status="failed")
    for code in ("schema_mismatch", *map(str, range(100))):
        metrics.turn_ended("m", failed, code)
        metrics.turn_took("m", "m", failed, USAGE, code)
        metrics.upstream_retry("m", code)
        metrics.fallback("m", "spare", code)
    duration = "gen_ai_client_operation_duration_seconds_count"
    for label, expected in (("schema_mismatch", 1), (OTHER, 100)):
        for name in ("turn_failures", "upstream_retries", "upstream_fallbacks"):
            full = f"wsserver_{name}_total"
            assert value(metrics, full, model="m", code=label) == expected
        assert value(metrics, duration, error_type=label) == expected
    assert value(metrics, "wsserver_turns_total", status="failed", reason="") == 101
    metrics.turn_ended("well", done(), None)
    assert value(metrics, "wsserver_turn_failures_total", model="well") is None


def test_the_buckets_are_the_conventions() -> None:
    metrics = Metrics()
    metrics.turn_took("m", "m", done(), USAGE, None)
    metrics.first_token("m", 0.5)
    doubled = [0.01 * 2**n for n in range(14)]
    for name in (
        "gen_ai_client_operation_duration_seconds",
        "gen_ai_client_operation_time_to_first_chunk_seconds",
        "wsserver_time_to_first_token_seconds",
    ):
        assert buckets(metrics, name) == pytest.approx(doubled)
    assert buckets(metrics, "gen_ai_client_token_usage") == [4**n for n in range(14)]
    per_token = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
    assert buckets(metrics, "wsserver_time_per_output_token_seconds") == per_token


def test_an_answer_in_one_lump_is_counted() -> None:
    metrics = Metrics()
    timing = Timing(queue_ms=1, upstream_ttft_ms=900, ttft_ms=901, total_ms=902)
    metrics.turn_took("m", "m", done(timing=timing), USAGE, None)
    assert value(metrics, "wsserver_turns_in_one_lump_total", model="m") == 1


def test_breakers_are_shown_as_they_are_when_somebody_asks() -> None:
    async def story() -> None:
        metrics, policy = Metrics(), BreakerPolicy(failures=1, open_seconds=5)
        well, ill = Breaker(policy), Breaker(policy)
        metrics.watch_breakers({"well": well, "ill": ill})
        ill.failed(ill.admit(anyio.current_time()) or 0, anyio.current_time())
        states = [value(metrics, STATE, model=name) for name in ("well", "ill")]
        assert states == [0, 2]
        await anyio.sleep(5)
        assert value(metrics, STATE, model="ill") == 1

    anyio.run(story, backend="trio", backend_options={"clock": jumping_clock()})


def test_lags_of_views_are_shown_as_they_are_when_somebody_asks() -> None:
    metrics, lags = Metrics(), list[int]()
    metrics.watch_views(lambda: lags)
    names = ("views", "views_behind", "view_lag_events")
    assert [value(metrics, f"wsserver_{name}") for name in names] == [0, 0, 0]
    lags += [0, 7, 0, 3]
    assert [value(metrics, f"wsserver_{name}") for name in names] == [4, 2, 7]


def test_clients_cannot_make_series_without_end() -> None:
    metrics = Metrics()
    for n in range(MAX_MODELS + 50):
        metrics.turn_started(f"m{n}")
    assert value(metrics, "wsserver_turns_started_total", model="m0") == 1
    assert value(metrics, "wsserver_turns_started_total", model=OTHER) == 50
    metrics.connection_closed(1000)
    metrics.connection_closed(3999)
    metrics.connection_closed(4999)
    assert value(metrics, "wsserver_connections_closed_total", code="1000") == 1
    assert value(metrics, "wsserver_connections_closed_total", code=OTHER) == 2


@pytest.mark.parametrize(
    ("call", "name", "expected"),
    [
        (
            lambda m: m.interrupted("streaming", 0.01),
            "interrupt_stop_seconds_sum",
            0.01,
        ),
        (lambda m: m.tool_done("ok", 3.0), "tool_seconds_sum", 3.0),
        (lambda m: m.upstream_retry("m", "c"), "upstream_retries_total", 1),
        (lambda m: m.fallback("m", "n", "c"), "upstream_fallbacks_total", 1),
        (lambda m: m.resume("reset", "expired"), "opens_total", 1),
        (lambda m: m.turned_away("full"), "connections_turned_away_total", 1),
        (lambda m: m.frame_error("bad_json"), "frame_errors_total", 1),
        (lambda m: m.commit(0.01, 5), "committed_entries_total", 5),
        (lambda m: m.commit(0.01, 5), "commit_seconds_count", 1),
        (lambda m: m.commit_failed(), "commit_failures_total", 1),
        (lambda m: m.delivered(2, 30), "frames_delivered_total", 2),
        (lambda m: m.delivered(2, 30), "events_delivered_total", 30),
        (lambda m: m.loop_lag(0.25), "event_loop_lag_seconds_sum", 0.25),
        (lambda m: m.conversations(4, 2), "conversations_loaded", 4),
        (lambda m: m.conversations(4, 2), "turns_running", 2),
        (lambda m: m.connection_opened(), "connections", 1),
    ],
)
def test_each_call_moves_its_number(call: object, name: str, expected: float) -> None:
    metrics = Metrics()
    assert callable(call)
    before = value(metrics, f"wsserver_{name}") or 0
    call(metrics)
    assert value(metrics, f"wsserver_{name}") == before + expected


def test_connections_go_down_again() -> None:
    metrics = Metrics()
    metrics.connection_opened()
    metrics.connection_opened()
    metrics.connection_closed(1006)
    assert value(metrics, "wsserver_connections") == 1
    assert value(metrics, "wsserver_connections_opened_total") == 2


def test_two_servers_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.connection_opened()
    assert value(other, "wsserver_connections") == 0
