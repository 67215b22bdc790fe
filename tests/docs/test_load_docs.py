"""The pages about load tests say what the program does."""

import re
from pathlib import Path

import pytest

from client_demo.load.scenario_file import SHIPPED, read, shipped
from tests.docs.load_page import PAGE, page

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "how-to" / "load-test.md"
SCENARIOS = re.findall(
    r"^```toml scenario\n(.*?)^```", RECIPES.read_text(), re.MULTILINE | re.DOTALL
)


def test_the_reference_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.docs.load_page"


def test_there_are_examples() -> None:
    assert len(SCENARIOS) == 2


@pytest.mark.parametrize("example", SCENARIOS)
def test_examples_can_be_run(example: str, tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(example)
    read(str(path))


def test_the_shipped_scenarios_are_listed_with_what_they_need() -> None:
    text = RECIPES.read_text()
    for name in shipped():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", text, re.MULTILINE)
        needed = re.search(r"--max-active-turns \d+", read(name).scenario.description)
        assert needed is None or needed.group() in row, name
    assert (SHIPPED.parent / "page.css").is_file()


def test_the_report_in_the_docs_is_one_of_chaos_without_a_violation() -> None:
    report = (ROOT / "docs" / "reports" / "chaos.html").read_text()
    assert "<h1>Chaos</h1>" in report
    assert "the oracle found nothing" in report
