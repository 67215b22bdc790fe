"""The page on metrics has each of them, with its labels, and no other."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from wsserver.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "observe.md").read_text()
ROWS = re.findall(r"^\| `([\w*]+)` \|([^|]*)\|", PAGE, re.MULTILINE)


def exposed() -> set[str]:
    """Returns the names as Prometheus has them, without a histogram's endings."""
    families = text_string_to_metric_families(Metrics().render().decode())
    return {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families
    }


def test_each_metric_has_its_row() -> None:
    names = {name for name, _ in ROWS}
    ours = {name for name in exposed() if not name.startswith("process_")}

    assert names - {"process_*"} == ours
    assert len(names) == len(ROWS)


@pytest.mark.parametrize(("name", "labels"), ROWS)
def test_its_labels_are_those_it_has(name: str, labels: str) -> None:
    if name == "process_*":
        return
    collectors = Metrics()._registry._names_to_collectors
    family = collectors.get(name)  # none: a family without labels, made when asked
    has = set(getattr(family, "_labelnames", ()))
    short = {"gen_ai_*" if re.match("gen_ai_(op|prov|req)", label) else label
             for label in has}  # fmt: skip
    assert set(re.findall(r"`([\w*]+)`", labels)) == short


def test_alerts_and_examples_name_metrics_that_exist() -> None:
    known = exposed()
    fences = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    examples = "".join(text for language, text in fences if language in ("", "yaml"))
    used = set(re.findall(r"\b((?:wsserver|gen_ai|process)_\w+)", examples))

    assert used
    for name in used:
        assert name in known or re.sub("_(bucket|sum|count)$", "", name) in known, name
