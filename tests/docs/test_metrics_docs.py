"""The reference of metrics is fresh; dashboard and alerts ask for what there is."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.docs.metrics_page import PAGE, bounds, page
from tests.docs.queries import (
    BOARD,
    DASHBOARD,
    DOCS,
    GROUPING,
    LABELS,
    OF_THE_TARGET,
    PANELS,
    SHOWN,
    WATCHED,
    asked,
    known,
)

GUIDES = sorted([*DOCS.parent.glob("*.md"), *DOCS.glob("**/*.md")])


def test_the_reference_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.docs.metrics_page"


@pytest.mark.parametrize("query", [*SHOWN, *WATCHED])
def test_a_query_asks_for_what_there_is(query: str) -> None:
    metrics = asked(query)
    assert metrics, "it asks for nothing"
    there = {"le", *OF_THE_TARGET}
    for name, selected, _ in metrics:
        if name == "up":  # Prometheus's own
            assert selected == 'job="wsserver"'
            continue
        family = known(name)
        assert family is not None, f"there is no {name}"
        there |= set(LABELS[family])
        for label in re.findall(r"(\w+)\s*(?:=~?|!=|!~)\s*\"", selected):
            assert label in {*LABELS[family], *OF_THE_TARGET}, f"{name} has no {label}"
    for group in GROUPING.findall(query):
        for label in group.split(","):
            assert label.strip() in there, f"nothing there has {label}"


@pytest.mark.parametrize("query", [*SHOWN, *WATCHED])
def test_a_query_is_of_this_server_alone(query: str) -> None:
    """Prometheus may read from other programs too, and all of them have `process_…`."""
    for name, selected, _ in asked(query):
        if name.startswith("process_"):
            on = query.endswith(" and on (job, instance) wsserver_build")
            assert on or selected == 'job="wsserver"'


@pytest.mark.parametrize("query", SHOWN)
def test_a_query_is_whole(query: str) -> None:
    assert all(
        query.count(pair[0]) == query.count(pair[1]) for pair in ("()", "{}", "[]")
    )
    for name, _, span in asked(query):
        counts = name.endswith(("_total", "_bucket", "_sum", "_count"))
        assert counts == bool(span), (
            f"{name} {'rises: take its rate' if counts else ''}"
        )
        if name.endswith("_bucket"):
            assert "histogram_quantile(" in query
            assert re.search(r"by \(le\b", query)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_legend_names_labels_that_the_query_keeps(panel: Any) -> None:
    for target in panel["targets"]:
        kept = {
            label.strip()
            for group in GROUPING.findall(target["expr"])
            for label in group.split(",")
        }
        if not kept:
            (name, _, _) = asked(target["expr"])[0]
            kept = set(LABELS[known(name) or ""])
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_a_guide_names_metrics_that_there_are(path: Path) -> None:
    text = path.read_text()
    named = set(re.findall(r"\b((?:wsserver|gen_ai)_[a-z_]+)\b(?!\.)", text))
    metrics = {name for name in named if name not in {"wsserver_", "gen_ai_"}}
    there = {name for name in metrics if known(name) or name in bounds()}
    assert metrics - there - set().union(*LABELS.values()) == set()


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = {known(name) for query in SHOWN for name, _, _ in asked(query)}
    ours = {name for name in LABELS if name.startswith(("wsserver_", "gen_ai_"))}
    assert ours - shown == set()


def test_grafana_takes_it() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    titles = [panel["title"] for panel in PANELS]
    assert len(set(titles)) == len(titles)
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
    for one, other in combinations(BOARD["panels"], 2):
        assert not _overlap(one["gridPos"], other["gridPos"])
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", DASHBOARD.read_text()))
    assert used - {"__rate_interval", "__all"} == variables
    for panel in PANELS:
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )
