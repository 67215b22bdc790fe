"""Writes the reference of metrics: `python -m tests.docs.metrics_page`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from wsserver.telemetry.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

_HEAD = """\
# Metrics

<!-- Made by `python -m tests.docs.metrics_page` from wsserver/telemetry/metric_families.py; do not edit. -->

`/metrics` is for Prometheus. Names and buckets are those of the OpenTelemetry conventions for clients
of generative models (`gen_ai.client.…`, with underscores for dots) where these have one. A histogram is
`…_bucket`, `…_sum` and `…_count`. Model names that clients make up are counted as `other` beyond the
first hundred. `gen_ai_provider_name` is `openai` for whatever speaks its API, `local` for the model that
the server runs itself, `demo`, and the name that a [provider of your own](../how-to/write-a-provider.md) has.

What they are good for stands in [Observe](../how-to/observe.md), next to a dashboard for Grafana.

| metric | kind | labels | |
|---|---|---|---|
"""

_BUCKETS = """
## Buckets

| histogram | upper bounds |
|---|---|
"""

_PROCESS = """
`process_…` are the usual metrics of a process (memory, processor time, open files).
"""


def families() -> list[Any]:
    """Returns every family of our own, in the order of the registry."""
    registry = Metrics()._of.registry
    return [
        family
        for collector in registry._collector_to_names
        for family in collector.collect()
        if not family.name.startswith("process_")
    ]


def labels() -> Mapping[str, tuple[str, ...]]:
    """Returns the labels of each family, by its name in queries."""
    registry = Metrics()._of.registry
    found: dict[str, tuple[str, ...]] = {}
    for collector in registry._collector_to_names:
        for family in collector.collect():
            source: Any = family
            if isinstance(collector, MetricWrapperBase):
                source = collector
            found[exposed(family)] = tuple(source._labelnames)
    return found


def exposed(family: Any) -> str:
    """Returns what a family is called where it is asked for."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def bounds() -> Mapping[str, list[float]]:
    """Returns the upper bounds of each histogram, without the last."""
    registry = Metrics()._of.registry
    return {
        collector._name: list(collector._upper_bounds)[:-1]
        for collector in registry._collector_to_names
        if hasattr(collector, "_upper_bounds")
    }


def page() -> str:
    """Returns the page as it has to be."""
    of = labels()
    rows = [
        f"| `{exposed(family)}` | {family.type} | {_listed(of[exposed(family)])}"
        f" | {family.documentation} |\n"
        for family in families()
    ]
    limits = [f"| `{name}` | {_numbers(its)} |\n" for name, its in bounds().items()]
    return _HEAD + "".join(rows) + _PROCESS + _BUCKETS + "".join(limits)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value:.10g}" for value in values)


if __name__ == "__main__":
    PAGE.write_text(page())
