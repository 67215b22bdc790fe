"""The benchmark's tables say what was measured, and go where they belong."""

from pathlib import Path

import pytest

from tests.bench import report
from tests.bench.__main__ import SCENARIOS
from tests.bench.report import Result, headline, notes, overview, table, write
from tests.bench.rows import ROWS
from tests.bench.runner import Runner

PACED = next(each for each in SCENARIOS if each.name == "paced-50")


def result(*us: float, delivered: float = 100, client_share: float = 5) -> Result:
    rest = {"delivered": delivered, "client_share": client_share}
    return Result(figures=[{"us": each} | rest for each in us])


def test_a_table_has_medians_spread_and_ratios() -> None:
    results = {"floor": result(10, 20, 12), "ours": result(30, 36, 90)}
    head, rule, floor, ours = table(PACED, results).splitlines()
    assert len(head) == len(rule) == len(floor) == len(ours)
    cells = [cell.strip() for cell in ours.split("|")]
    assert cells[1:5] == ["ours", "36.0", "30.0 to 90.0", "3.00"]


def test_who_fell_behind_has_a_star_and_who_failed_a_word() -> None:
    failed = Result(failure="3 of 50 streams began in time")
    rows = {"floor": result(10), "slow": result(30, delivered=50), "none": failed}
    text = overview([PACED], {"paced-50": rows})
    assert "30.0* (3.00)" in text
    assert "behind" in text


def test_a_busy_rig_is_said() -> None:
    assert notes({"calm": result(10)}) == []
    (note,) = notes({"calm": result(10), "nginx": result(1, client_share=95)})
    assert "clients took more than" in note
    assert "`nginx`" in note


def test_a_written_table_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n"
        "# B\n<!-- bench:b -->\nkept\n<!-- /bench:b -->\n"
    )
    monkeypatch.setattr(report, "PAGE", page)
    write("a", "new \\1\n")
    assert page.read_text() == (
        "# A\n<!-- bench:a -->\nnew \\1\n<!-- /bench:a -->\n"
        "# B\n<!-- bench:b -->\nkept\n<!-- /bench:b -->\n"
    )


def test_the_page_has_a_place_for_every_table_and_names_every_row() -> None:
    page = report.PAGE.read_text()
    for name in ["machine", "overview", *(each.name for each in SCENARIOS)]:
        assert f"<!-- bench:{name} -->\n" in page
    for row in ROWS:
        assert f"| `{row.name}` | {row.what} |" in page


def test_a_readme_shows_a_few_rows_once_all_of_them_were_measured() -> None:
    rows = {row.name: result(20, 21.6, 40) for row in ROWS}
    head, _, *lines = headline(rows).splitlines()
    assert "µs/token" in head
    assert len(lines) == 6
    assert "| nginx passing SSE through " in lines[0]
    assert all(line.endswith(" 22 |") for line in lines)
    assert headline({"nginx": result(1)}) == ""
    for page in report.READMES:
        assert "<!-- bench:headline -->\n" in page.read_text()


def test_who_fell_behind_is_spared_what_grows_from_there_and_no_less() -> None:
    row = ROWS[0]
    runner = Runner([row], SCENARIOS, 1.0)
    by_name = {each.name: each for each in SCENARIOS}
    runner._fell_behind(by_name["paced-200"], row)
    spared = {name for name, each in by_name.items() if runner._is_spared(each, row)}
    assert spared == {"paced-200", "paced-500", "paced-1000"}
