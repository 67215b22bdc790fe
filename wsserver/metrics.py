"""What is counted, for Prometheus. Others see only the methods they call.

Names and buckets are those of the OpenTelemetry conventions for clients of
generative models (`gen_ai.client.*`, dots written as underscores) where those have
one; all else begins with `wsserver_`. Label values come from closed sets, or are
capped, so that no client can make series without end.
"""

from collections.abc import Iterator
from functools import lru_cache

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from protocol.codes import CloseCode
from protocol.events import DoneEvent, UsageEvent
from wsserver import __version__

OTHER = "other"
MAX_MODELS = 100
"""Model names beyond so many are counted as `other`: clients choose them."""

_OPERATION_BUCKETS = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96,
    81.92,
)  # fmt: skip
_TOKEN_BUCKETS = tuple(4.0**n for n in range(14))
_PER_TOKEN_BUCKETS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
_SHORT_BUCKETS = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
)  # fmt: skip
_GEN_AI = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
_CLOSE_CODES = frozenset(map(int, CloseCode)) | {1005, 1006}


class Metrics:
    """All metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        prometheus_client.disable_created_metrics()
        self._registry = prometheus_client.CollectorRegistry()
        self._frames = 0
        self._numbers = 0
        self._models: set[str] = set()
        self._started = self._counter("turns_started", "Turns begun.", "model")
        self._turns = self._counter(
            "turns", "Turns ended.", "model", "status", "reason"
        )
        self._running = self._gauge("turns_running", "Turns that run.")
        self._loaded = self._gauge("conversations_loaded", "Conversations in memory.")
        self._connections = self._gauge("connections", "Open connections.")
        self._opened = self._counter("connections_opened", "Connections opened.")
        self._closed = self._counter("connections_closed", "Connections ended.", "code")
        self._frame_errors = self._counter(
            "frame_errors", "Frames of clients answered with an error.", "code"
        )
        self._resumes = self._counter("opens", "Opens.", "outcome", "reason")
        self._retries = self._counter(
            "upstream_retries", "Model calls made again.", "model", "code"
        )
        self._commit = self._histogram("commit_seconds", "Time of a commit.")
        self._entries = self._counter("committed_entries", "Entries committed.")
        self._commit_failures = self._counter("commit_failures", "Failed commits.")
        self._stop = self._histogram(
            "interrupt_stop_seconds", "Interrupt to upstream closed.", "phase"
        )
        self._tool = self._histogram(
            "tool_seconds", "Time of tool calls.", "status", buckets=_OPERATION_BUCKETS
        )
        self._lag = self._histogram("event_loop_lag_seconds", "Lag of the event loop.")
        self._first_token = self._histogram(
            "time_to_first_token_seconds",
            "Message accepted to first token.",
            "model",
            buckets=_OPERATION_BUCKETS,
        )
        self._per_token = self._histogram(
            "time_per_output_token_seconds",
            "Time per output token after the first.",
            "model",
            buckets=_PER_TOKEN_BUCKETS,
        )
        self._duration = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Time of a turn's model calls.",
            (*_GEN_AI, "error_type"),
            buckets=_OPERATION_BUCKETS,
            registry=self._registry,
        )
        self._first_chunk = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Request sent to first token.",
            _GEN_AI,
            buckets=_OPERATION_BUCKETS,
            registry=self._registry,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a turn.",
            (*_GEN_AI, "gen_ai_token_type"),
            buckets=_TOKEN_BUCKETS,
            registry=self._registry,
        )
        build = self._gauge("build", "Always 1; says which version runs.", "version")
        build.labels(__version__).set(1)
        self._registry.register(_Delivered(self))
        prometheus_client.ProcessCollector(registry=self._registry)
        # Finding a labelled child costs more than counting with it.
        self._child = lru_cache(maxsize=4096)(_child)

    def render(self) -> bytes:
        """Returns everything as Prometheus text."""
        return prometheus_client.generate_latest(self._registry)

    def turn_started(self, model: str) -> None:
        """Counts a turn."""
        self._count(self._started, self._label(model))

    def turn_done(self, model: str, done: DoneEvent, usage: UsageEvent) -> None:
        """Counts how a turn ended and what it took."""
        label = self._label(model)
        self._count(self._turns, label, done.status, done.reason or "")
        gen_ai = ("chat", "demo" if model.startswith("demo/") else "openai", label)
        timing = done.timing
        error = "" if done.status == "completed" else done.reason or done.status
        seconds = timing.total_ms - timing.queue_ms - (timing.tool_ms or 0.0)
        self._observe(self._duration, max(0.0, seconds) / 1000, *gen_ai, error)
        self._observe(self._tokens, usage.input_tokens, *gen_ai, "input")
        self._observe(self._tokens, usage.output_tokens, *gen_ai, "output")
        if timing.upstream_ttft_ms is not None:
            self._observe(self._first_chunk, timing.upstream_ttft_ms / 1000, *gen_ai)
        if timing.tpot_ms is not None:
            self._observe(self._per_token, timing.tpot_ms / 1000, label)

    def first_token(self, model: str, seconds: float) -> None:
        """Counts a time to first token."""
        self._observe(self._first_token, seconds, self._label(model))

    def interrupted(self, phase: str, stop_seconds: float) -> None:
        """Counts an interrupt and the time until the upstream was closed."""
        self._observe(self._stop, stop_seconds, phase)

    def tool_done(self, status: str, seconds: float) -> None:
        """Counts a settled tool call."""
        self._observe(self._tool, seconds, status)

    def upstream_retry(self, model: str, code: str) -> None:
        """Counts another attempt."""
        self._count(self._retries, self._label(model), code)

    def conversations(self, loaded: int, running: int) -> None:
        """Sets how many conversations are in memory and how many turns run."""
        self._loaded.set(loaded)
        self._running.set(running)

    def connection_opened(self) -> None:
        """Counts a connection."""
        self._opened.inc()
        self._connections.inc()

    def connection_closed(self, code: int) -> None:
        """Counts a connection's end; 1006 where there was no close frame."""
        self._connections.dec()
        self._count(self._closed, str(code) if code in _CLOSE_CODES else OTHER)

    def frame_error(self, code: str) -> None:
        """Counts a frame that was answered with an error."""
        self._count(self._frame_errors, code)

    def resume(self, outcome: str, reason: str | None) -> None:
        """Counts an `open` by what it got."""
        self._count(self._resumes, outcome, reason or "")

    def delivered(self, frames: int, numbers: int) -> None:
        """Counts frames with events, and the numbers they stood for."""
        self._frames += frames
        self._numbers += numbers

    def commit(self, seconds: float, entries: int) -> None:
        """Counts a commit and how long it took."""
        self._commit.observe(seconds)
        self._entries.inc(entries)

    def commit_failed(self) -> None:
        """Counts a commit that failed."""
        self._commit_failures.inc()

    def loop_lag(self, seconds: float) -> None:
        """Counts by how much the event loop was late."""
        self._lag.observe(seconds)

    def delivered_totals(self) -> tuple[int, int]:
        """Returns what `delivered` counted: frames and numbers."""
        return self._frames, self._numbers

    def _label(self, model: str) -> str:
        if model in self._models:
            return model
        if len(self._models) >= MAX_MODELS:
            return OTHER
        self._models.add(model)
        return model

    def _count(self, family: Counter, *labels: str) -> None:
        child = self._child(family, labels)
        assert isinstance(child, Counter), "a family's children are of its kind"
        child.inc()

    def _observe(self, family: Histogram, value: float, *labels: str) -> None:
        child = self._child(family, labels)
        assert isinstance(child, Histogram), "a family's children are of its kind"
        child.observe(value)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"wsserver_{name}", meaning, labels, registry=self._registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"wsserver_{name}", meaning, labels, registry=self._registry)

    def _histogram(
        self,
        name: str,
        meaning: str,
        *labels: str,
        buckets: tuple[float, ...] = _SHORT_BUCKETS,
    ) -> Histogram:
        return Histogram(
            f"wsserver_{name}",
            meaning,
            labels,
            buckets=buckets,
            registry=self._registry,
        )


class _Delivered(Collector):
    """Shows what is counted with plain numbers, as it is counted for every batch."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yields the two counters."""
        frames, numbers = self._metrics.delivered_totals()
        yield CounterMetricFamily(
            "wsserver_frames_delivered", "Frames with events sent.", value=frames
        )
        yield CounterMetricFamily(
            "wsserver_events_delivered", "Events they stood for.", value=numbers
        )


def _child(family: Counter | Histogram, labels: tuple[str, ...]) -> Counter | Histogram:
    return family.labels(*labels)
