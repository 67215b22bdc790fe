"""Metrics that are looked at when somebody asks, not counted as things happen."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import anyio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from wsserver.engine.breaker import Breaker, State

_STATES: dict[State, int] = {"closed": 0, "half_open": 1, "open": 2}


class Delivered(Collector):
    """What is counted with plain numbers, as it is counted for every batch."""

    def __init__(self, totals: Callable[[], tuple[int, int]]) -> None:
        """Takes what returns the frames, and the numbers they stood for."""
        self._totals = totals

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yields the two counters."""
        frames, numbers = self._totals()
        yield CounterMetricFamily(
            "wsserver_frames_delivered",
            "Frames with events sent, and each `caught_up`.",
            value=frames,
        )
        yield CounterMetricFamily(
            "wsserver_events_delivered", "Events they stood for.", value=numbers
        )


class LogLines(Collector):
    """What the log was told."""

    def __init__(self, by_level: Mapping[str, int]) -> None:
        """Takes what counts them."""
        self._by_level = by_level

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yields the counter; the levels that ask for somebody are always there."""
        family = CounterMetricFamily(
            "wsserver_log_lines",
            "Lines of the log. What somebody has to see to, a defect above all, is an"
            " `error`.",
            labels=["level"],
        )
        for level in sorted({"warning", "error", *self._by_level}):
            family.add_metric([level], self._by_level.get(level, 0))
        yield family


class Breakers(Collector):
    """Where the breakers are."""

    def __init__(self, breakers: Mapping[str, Breaker]) -> None:
        """Takes them by the names of their models; there may come more."""
        self._breakers = breakers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the gauge."""
        family = GaugeMetricFamily(
            "wsserver_breaker_state",
            "Of a model in a chain of fallbacks: 0 closed, it is asked; 1 half open,"
            " the next call tries it; 2 open, it is passed over.",
            labels=["model"],
        )
        if self._breakers:
            now = anyio.current_time()
            for model, breaker in self._breakers.items():
                family.add_metric([model], _STATES[breaker.state(now)])
        yield family


class Views(Collector):
    """How far connections are behind the logs of what they have open."""

    def __init__(self, lags: Callable[[], Iterable[int]]) -> None:
        """Takes what returns, for each open conversation, the numbers not sent yet."""
        self._lags = lags

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the three gauges."""
        lags = list(self._lags())
        yield GaugeMetricFamily(
            "wsserver_views", "Conversations open on connections.", value=len(lags)
        )
        yield GaugeMetricFamily(
            "wsserver_views_behind",
            "Those of them that were not sent all that is stored.",
            value=sum(lag > 0 for lag in lags),
        )
        yield GaugeMetricFamily(
            "wsserver_view_lag_events",
            "How many events the one furthest behind was not sent yet.",
            value=max(lags, default=0),
        )
