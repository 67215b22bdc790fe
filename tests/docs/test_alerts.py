"""The alerts of the docs see what they are for."""

import re
from collections import Counter
from typing import get_args

import pytest

from protocol.codes import ERRORS
from protocol.events import Reason, Status
from tests.docs.queries import DOCS, RULES, SHOWN, WATCHED, alerts, asked
from wsserver.telemetry import metrics

LEVELS = ("debug", "info", "warning", "error")
VALUES: dict[tuple[str, str], set[str]] = {
    ("wsserver_turns_total", "status"): set(get_args(Status)),
    ("wsserver_turns_total", "reason"): set(get_args(Reason)),
    ("wsserver_turn_failures_total", "code"): set(ERRORS),
    ("wsserver_upstream_fallbacks_total", "code"): set(ERRORS),
    ("wsserver_log_lines_total", "level"): set(LEVELS),
}


def test_each_alert_is_read_here_and_has_a_name_of_its_own() -> None:
    names = [name for name, _, _ in alerts()]
    assert len(names) == RULES.read_text().count("alert:") > 0
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("query", [*SHOWN, *WATCHED])
def test_a_query_names_values_that_there_are(query: str) -> None:
    for name, selected, _ in asked(query):
        for label, values in re.findall(r"(\w+)[=!]~?\"([^\"$]*)\"", selected):
            if label != "job":
                assert set(values.split("|")) <= VALUES[name, label]


@pytest.mark.parametrize("query", WATCHED)
def test_the_first_of_its_kind_is_seen(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A series that begins at 1 has no increase: it is there before, or asked for itself."""
    # What other tests have logged in this process is counted, too.
    monkeypatch.setattr(metrics, "LINES", Counter[str]())
    at_start = metrics.Metrics().render().decode()
    for metric in re.findall(r"increase\((\w+(?:\{[^}]*\})?)\[", query):
        begins = f"{metric} unless {metric} offset 10m"
        assert f"\n{metric} 0.0\n" in at_start or begins in query


def test_a_turn_that_ended_as_it_was_to_wakes_nobody() -> None:
    (query,) = [query for name, query, _ in alerts() if name == "WsserverTurnsFail"]
    selected = next(selected for _, selected, _ in asked(query))
    for reason in ("max_output_tokens", "content_filter", "server_shutdown"):
        assert re.search(rf'reason!~"[^"]*\b{reason}\b', selected)


def test_the_job_is_called_as_the_guide_calls_it() -> None:
    guide = (DOCS / "how-to" / "observe.md").read_text()
    assert "job_name: wsserver\n" in guide
    jobs = set(re.findall(r'job="(\w+)"', RULES.read_text()))
    assert jobs == {"wsserver"}
