"""What Prometheus is asked for in the docs: by the dashboard, and by the alerts."""

import re
from pathlib import Path
from typing import Any

import orjson

from tests.docs.metrics_page import bounds, labels

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = DOCS / "grafana" / "wsserver.json"
BOARD: Any = orjson.loads(DASHBOARD.read_bytes())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
RULES = DOCS / "prometheus" / "wsserver.rules.yml"
LABELS = labels()

OF_THE_TARGET = {"job", "instance"}
"""The labels that Prometheus gives to all that it reads at one place."""

GROUPING = re.compile(r"\b(?:by|without|ignoring|on) \(([^)]*)\)")

# A metric, the labels in its braces, and the range behind it.
_SELECTOR = re.compile(r"\b(up|[a-z][a-z_]*_[a-z_]+)\b(?:\{([^}]*)\})?(\[[^]]*\])?")
_WORDS = {"histogram_quantile", "group_left", "group_right"}
_ALERT = re.compile(
    r"- alert: (\w+)\n {8}expr: (?:>\n((?: {10}.*\n)+)|(.*)\n)"
    r"(?: {8}for: .*\n)? {8}annotations:\n {10}summary: (.*)\n"
)


def alerts() -> list[tuple[str, str, str]]:
    """Returns each alert's name, query and summary."""
    return [
        (name, " ".join((block or line).split()), summary)
        for name, block, line, summary in _ALERT.findall(RULES.read_text())
    ]


SHOWN = [target["expr"] for panel in PANELS for target in panel["targets"]]
WATCHED = [query for _, query, _ in alerts()]


def asked(query: str) -> list[tuple[str, str, str]]:
    """Returns the metrics of a query: name, labels in braces, range."""
    bare = GROUPING.sub("", query)
    return [found for found in _SELECTOR.findall(bare) if found[0] not in _WORDS]


def known(name: str) -> str | None:
    """Returns the family that a name in a query belongs to."""
    if name in LABELS and name not in bounds():
        return name
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and name.removesuffix(suffix) in bounds():
            return name.removesuffix(suffix)
    return None
