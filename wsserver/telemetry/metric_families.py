"""Every metric there is: its name, what it means, its labels and its buckets.

Names and buckets are those of the OpenTelemetry conventions for clients of
generative models (`gen_ai.client.*`, dots written as underscores) where those have
one; all else begins with `wsserver_`.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS_BUCKETS = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96,
    81.92,
)  # fmt: skip
"""Those of the conventions for the time of an operation and for its first chunk."""

_TURN_BUCKETS = (*SECONDS_BUCKETS, 163.84, 327.68, 655.36)
_TOKEN_BUCKETS = tuple(4.0**n for n in range(14))
_PER_TOKEN_BUCKETS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
_RATE_BUCKETS = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
_SHORT_BUCKETS = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
)  # fmt: skip
_GEN_AI = (
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_request_model",
    "gen_ai_response_model",
)


class Families:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._turns()
        self._upstreams()
        self._clients()
        self._server()

    def _turns(self) -> None:
        self.turns_started = self._counter("turns_started", "Turns begun.", "model")
        self.turns = self._counter(
            "turns",
            "Turns ended, by the status and reason of their `done`.",
            "model", "status", "reason",
        )  # fmt: skip
        self.turn_failures = self._counter(
            "turn_failures", "Turns that failed, by the code of their `error`.",
            "model", "code",
        )  # fmt: skip
        self.turns_running = self._gauge("turns_running", "Turns that run.")
        self.conversations = self._gauge(
            "conversations_loaded", "Conversations in memory."
        )
        self.turn = self._histogram(
            "turn_seconds",
            "Message accepted to `done`, queue and tools included.",
            "model", "status",
            buckets=_TURN_BUCKETS,
        )  # fmt: skip
        self.first_token = self._histogram(
            "time_to_first_token_seconds",
            "Message accepted to the first piece of answer, reasoning, refusal or call.",
            "model",
            buckets=SECONDS_BUCKETS,
        )
        self.per_token = self._histogram(
            "time_per_output_token_seconds",
            "Time per output token after the first.",
            "model",
            buckets=_PER_TOKEN_BUCKETS,
        )
        self.token_rate = self._histogram(
            "tokens_per_second",
            "Output tokens per second after the first.",
            "model",
            buckets=_RATE_BUCKETS,
        )
        self.lumps = self._counter(
            "turns_in_one_lump",
            "Completed turns whose first token came with all others, after a wait:"
            " something on the way gathers the answer.",
            "model",
        )
        self.stop = self._histogram(
            "interrupt_stop_seconds",
            "Interrupt applied to upstream closed, by the phase the turn was in.",
            "phase",
        )
        self.tool = self._histogram(
            "tool_seconds",
            "Tool call asked for to settled.",
            "status",
            buckets=_TURN_BUCKETS,
        )

    def _upstreams(self) -> None:
        self.duration = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Time of a turn's model calls.",
            (*_GEN_AI, "error_type"),
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.first_chunk = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Request sent to the first piece that is shown.",
            _GEN_AI,
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a turn.",
            (*_GEN_AI, "gen_ai_token_type"),
            buckets=_TOKEN_BUCKETS,
            registry=self.registry,
        )
        self.retries = self._counter(
            "upstream_retries",
            "Model calls made again, by why the one before failed.",
            "model", "code",
        )  # fmt: skip
        self.fallbacks = self._counter(
            "upstream_fallbacks",
            "Model calls that went on to another model, by why.",
            "model", "to", "code",
        )  # fmt: skip

    def _clients(self) -> None:
        self.connections = self._gauge("connections", "Open connections.")
        self.connections_opened = self._counter(
            "connections_opened", "Connections opened."
        )
        self.connections_closed = self._counter(
            "connections_closed", "Connections ended; 1006: without a word.", "code"
        )
        self.turned_away = self._counter(
            "connections_turned_away",
            "Connections answered with 503 or 429 for want of room: `full`"
            " (`max_connections`), `crowd` (more at once than can be listened to; with"
            " TLS dropped), `address` (`max_address_connections`), `draining`. And those"
            " whose TLS handshake took too long: `handshake`; and pages that may not"
            " connect: `origin`.",
            "reason",
        )
        self.frame_errors = self._counter(
            "frame_errors", "Frames of clients answered with an error.", "code"
        )
        self.opens = self._counter(
            "opens", "Conversations opened, by the verdict on the cursor.",
            "outcome", "reason",
        )  # fmt: skip

    def _server(self) -> None:
        self.commit = self._histogram("commit_seconds", "Time of a commit.")
        self.committed = self._counter("committed_entries", "Entries committed.")
        self.commit_failures = self._counter("commit_failures", "Failed commits.")
        self.lag = self._histogram("event_loop_lag_seconds", "Lag of the event loop.")
        self.build = self._gauge(
            "build", "Always 1; says which version runs.", "version"
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"wsserver_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"wsserver_{name}", meaning, labels, registry=self.registry)

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
            registry=self.registry,
        )
