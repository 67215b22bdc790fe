"""What is counted, for Prometheus. Others see only the methods they call.

What the numbers are called stands in `wsserver.telemetry.metric_families`. Label values come
from closed sets, or are capped, so that no client can make series without end.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import prometheus_client
from prometheus_client import Counter, Histogram

from protocol.codes import ERRORS, NO_CLOSE_FRAME, CloseCode
from protocol.events import DoneEvent, UsageEvent
from wsserver import __version__
from wsserver.engine.breaker import Breaker
from wsserver.engine.timing import in_one_lump
from wsserver.telemetry.logging import LINES
from wsserver.telemetry.metric_families import Families
from wsserver.telemetry.scraped import Breakers, Delivered, LogLines, Views

OTHER = "other"
MAX_MODELS = 100
"""Model names beyond so many are counted as `other`: clients choose them."""

_CLOSE_CODES = frozenset(map(int, CloseCode)) | {1005, NO_CLOSE_FRAME}


class Metrics:
    """All metrics of one server."""

    def __init__(self) -> None:
        prometheus_client.disable_created_metrics()
        self._of = Families()
        self._frames = 0
        self._numbers = 0
        self._own_models: frozenset[str] = frozenset()
        self._models: set[str] = set()
        self._breakers: dict[str, Breaker] = {}
        self._lags: Callable[[], Iterable[int]] = list
        self._provider_of: Callable[[str], str | None] = lambda _: None
        self._of.build.labels(__version__).set(1)
        registry = self._of.registry
        registry.register(Delivered(lambda: (self._frames, self._numbers)))
        registry.register(LogLines(LINES))
        registry.register(Breakers(self._breakers))
        registry.register(Views(lambda: self._lags()))
        prometheus_client.ProcessCollector(registry=registry)
        # Finding a labelled child costs more than counting with it.
        self._child = lru_cache(maxsize=4096)(_child)

    def render(self) -> bytes:
        """Returns everything as Prometheus text."""
        return prometheus_client.generate_latest(self._of.registry)

    def watch_breakers(self, breakers: Mapping[str, Breaker]) -> None:
        """Shows the state of these, by the name of the model, from now on."""
        self._breakers.update(breakers)

    def watch_views(self, lags: Callable[[], Iterable[int]]) -> None:
        """Shows from now on what `lags` says of each open conversation.

        That is how many numbers it was not sent yet.
        """
        self._lags = lags

    def name_models(
        self, names: Iterable[str], provider_of: Callable[[str], str | None]
    ) -> None:
        """Takes what is known of models from now on.

        Args:
            names: Models that the operator has, which are counted by name however
                many others clients make up.
            provider_of: Says which provider serves a model; None: none.
        """
        self._own_models = frozenset(names)
        self._provider_of = provider_of

    # Turns

    def turn_started(self, model: str) -> None:
        """Counts a turn."""
        self._count(self._of.turns_started, self._label(model))

    def turn_ended(self, model: str, done: DoneEvent, code: str | None) -> None:
        """Counts how a turn ended.

        Args:
            model: The model that was asked for.
            done: The turn's last event.
            code: Of the turn's error; None where it did not fail.
        """
        label = self._label(model)
        self._count(self._of.turns, label, done.status, done.reason or "")
        if code is not None:
            self._count(self._of.turn_failures, label, _known(code))

    def turn_took(
        self,
        model: str,
        answering: str,
        done: DoneEvent,
        usage: UsageEvent,
        code: str | None,
    ) -> None:
        """Counts what a turn took that has ended.

        Args:
            model: The model that was asked for.
            answering: The one that answered last, with a fallback maybe another.
            done: The turn's last event.
            usage: What it cost.
            code: Of the turn's error; None where it did not fail.
        """
        of, timing, label = self._of, done.timing, self._label(model)
        self._observe(of.turn, timing.total_ms / 1000, label, done.status)
        if timing.tpot_ms is not None:
            self._observe(of.per_token, timing.tpot_ms / 1000, label)
        if timing.tokens_per_s is not None:
            self._observe(of.token_rate, timing.tokens_per_s, label)
        if in_one_lump(done, usage):
            self._count(of.lumps, label)
        provider = self._provider_of(answering) or OTHER
        gen_ai = ("chat", provider, label, self._label(answering))
        error = done.reason or ("" if code is None else _known(code))
        model_ms = timing.total_ms - timing.queue_ms - (timing.tool_ms or 0.0)
        self._observe(of.duration, max(0.0, model_ms) / 1000, *gen_ai, error)
        self._observe(of.tokens, usage.input_tokens, *gen_ai, "input")
        self._observe(of.tokens, usage.output_tokens, *gen_ai, "output")
        if timing.upstream_ttft_ms is not None:
            self._observe(of.first_chunk, timing.upstream_ttft_ms / 1000, *gen_ai)

    def first_token(self, model: str, seconds: float) -> None:
        """Counts a time to first token."""
        self._observe(self._of.first_token, seconds, self._label(model))

    def interrupted(self, phase: str, stop_seconds: float) -> None:
        """Counts an interrupt and the time until the upstream was closed."""
        self._observe(self._of.stop, stop_seconds, phase)

    def tool_done(self, status: str, seconds: float) -> None:
        """Counts a settled tool call."""
        self._observe(self._of.tool, seconds, status)

    def upstream_retry(self, model: str, code: str) -> None:
        """Counts another attempt."""
        self._count(self._of.retries, self._label(model), _known(code))

    def fallback(self, model: str, to: str, code: str) -> None:
        """Counts that `to` is asked because of what was asked before it."""
        labels = (self._label(model), self._label(to), _known(code))
        self._count(self._of.fallbacks, *labels)

    def conversations(self, loaded: int, running: int) -> None:
        """Sets how many conversations are in memory and how many turns run."""
        self._of.conversations.set(loaded)
        self._of.turns_running.set(running)

    # Connections

    def connection_opened(self) -> None:
        """Counts a connection."""
        self._of.connections_opened.inc()
        self._of.connections.inc()

    def connection_closed(self, code: int) -> None:
        """Counts a connection's end; 1006 where there was no close frame."""
        self._of.connections.dec()
        known = str(code) if code in _CLOSE_CODES else OTHER
        self._count(self._of.connections_closed, known)

    def turned_away(self, reason: str) -> None:
        """Counts a client that was told to come back."""
        self._count(self._of.turned_away, reason)

    def frame_error(self, code: str) -> None:
        """Counts a frame that was answered with an error."""
        self._count(self._of.frame_errors, code)

    def resume(self, outcome: str, reason: str | None) -> None:
        """Counts an `open` by what it got."""
        self._count(self._of.opens, outcome, reason or "")

    def delivered(self, frames: int, numbers: int) -> None:
        """Counts frames of conversations, and the numbers that events stood for."""
        self._frames += frames
        self._numbers += numbers

    # The store and the process

    def commit(self, seconds: float, entries: int) -> None:
        """Counts a commit and how long it took."""
        self._of.commit.observe(seconds)
        self._of.committed.inc(entries)

    def commit_failed(self) -> None:
        """Counts a commit that failed."""
        self._of.commit_failures.inc()

    def loop_lag(self, seconds: float) -> None:
        """Counts by how much the event loop was late."""
        self._of.lag.observe(seconds)

    # Inside

    def _label(self, model: str) -> str:
        if model in self._own_models or model in self._models:
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


def _known(code: str) -> str:
    """Returns the code of an error; a provider of somebody's own may make one up."""
    return code if code in ERRORS else OTHER


def _child(family: Counter | Histogram, labels: tuple[str, ...]) -> Counter | Histogram:
    return family.labels(*labels)
