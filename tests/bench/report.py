"""Makes tables of figures, and puts them into the page."""

import os
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from tests.bench.rows import ROWS
from tests.bench.scenario import KEEPS_UP, Column, Figures, Scenario

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "explanation" / "speed.md"
READMES = (_ROOT / "README.md", _ROOT / "README.zh.md")
HEADLINE = "paced-200"
_IN_HEADLINE = (
    "nginx", "wsserver-memory", "wsserver-sqlite", "node-ws", "plain-sdk", "fastapi-sse",
)  # fmt: skip
FLOOR = "floor"
SATURATED_PERCENT = 85.0
FULL_PERCENT = 97.0


class Result(Struct, kw_only=True):
    """What the rounds of one row in one scenario yielded.

    Attributes:
        figures: Of each round that came to its end.
        failure: Why one did not.
    """

    figures: list[Figures] = field(default_factory=list)
    failure: str | None = None

    def values(self, key: str) -> list[float]:
        """Returns a figure of all rounds."""
        return [each[key] for each in self.figures if key in each]

    def median(self, key: str) -> float | None:
        """Returns a figure's median; None where no round yielded it."""
        values = self.values(key)
        return statistics.median(values) if values else None


Results = Mapping[str, Result]


def table(scenario: Scenario, results: Results) -> str:
    """Returns a scenario's table in Markdown, a row each, and what to mind of it."""
    floor = results.get(FLOOR)
    heads = ["row"]
    for column in scenario.columns:
        heads.append(column.heading)
        if column.compared:
            heads += ["min to max", "x floor"]
    lines = [heads]
    for name, result in results.items():
        if result.figures:
            lines.append([name, *_cells(scenario.columns, result, floor)])
        else:
            lines.append([name, "behind", *[""] * (len(heads) - 2)])
    return markdown(lines) + "".join(f"\n{note}\n" for note in notes(results))


def _cells(
    columns: Sequence[Column], result: Result, floor: Result | None
) -> list[str]:
    cells: list[str] = []
    for column in columns:
        median = result.median(column.key)
        shown = "" if median is None else f"{median:,.{column.digits}f}"
        cells.append(shown)
        if column.compared:
            values = result.values(column.key)
            base = floor.median(column.key) if floor else None
            low, high = f"{min(values):,.1f}", f"{max(values):,.1f}"
            cells.append(f"{low} to {high}")
            cells.append(f"{median / base:.2f}" if base and median else "")
    return cells


def notes(results: Results) -> list[str]:
    """Returns warnings: who was saturated, and who did not come to the end."""
    found: list[str] = []
    if rows := _above(results, "machine_share", FULL_PERCENT * (os.cpu_count() or 1)):
        found.append(
            f"Full: no processor of the machine was idle at {rows}; delays tell how long"
            " one waits for a processor."
        )
    for key, what in (("client_share", "clients"), ("upstream_share", "upstream")):
        others = {n: each for n, each in results.items() if n != what}
        if rows := _above(others, key, SATURATED_PERCENT):
            found.append(
                f"Saturated: the {what} took more than {SATURATED_PERCENT:g} % of a core"
                f" at {rows}; delays and tokens per second are the rig's."
            )
    for name, result in results.items():
        if result.failure:
            found.append(f"`{name}`: {result.failure}.")
    return found


def _above(results: Results, key: str, limit: float) -> str:
    above = (
        f"`{name}`"
        for name, result in results.items()
        if max(result.values(key), default=0.0) > limit
    )
    return ", ".join(above)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Returns a table that can be read as it stands; the first line is its head."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    rows: list[str] = []
    for line in lines:
        first, *rest = (
            cell.rjust(width) for cell, width in zip(line, widths, strict=True)
        )
        rows.append("| " + " | ".join([first.strip().ljust(widths[0]), *rest]) + " |")
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([rows[0], f"| {' | '.join(rule)} |", *rows[1:]]) + "\n"


def overview(scenarios: Sequence[Scenario], all_results: Mapping[str, Results]) -> str:
    """Returns one table of what a token costs: a row each, a column per load.

    A star stands where a row fell behind: the more waits, the more it does at once.
    """
    loads = [each for each in scenarios if each.group == "paced"]
    loads += [each for each in scenarios if each.name == "flat-out"]
    loads = [each for each in loads if each.name in all_results]
    if not loads:
        return ""
    names = dict.fromkeys(name for each in loads for name in all_results[each.name])
    lines = [["row", *(each.name for each in loads)]]
    for name in names:
        cells: list[str] = []
        for load in loads:
            result = all_results[load.name].get(name)
            median = result.median("us") if result else None
            floor = all_results[load.name].get(FLOOR)
            base = floor.median("us") if floor else None
            if median is None:
                cells.append("behind" if result and result.failure else "")
            else:
                ratio = f" ({median / base:.2f})" if base else ""
                late = result is not None and (
                    (result.median("delivered") or 0) < 100 * KEEPS_UP
                )
                cells.append(f"{median:,.1f}{'*' if late else ''}{ratio}")
        lines.append([name, *cells])
    return markdown(lines)


def headline(results: Results) -> str:
    """Returns the few figures that a README shows; nothing where one is missing.

    Args:
        results: Of the scenario `HEADLINE`.
    """
    described = {row.name: row.what for row in ROWS}
    lines = [["", "µs/token"]]
    for name in _IN_HEADLINE:
        median = results[name].median("us") if name in results else None
        if median is None:
            return ""
        lines.append([described[name], f"{median:.0f}"])
    return markdown(lines)


def write(name: str, text: str, page: Path | None = None) -> None:
    """Puts a text between a page's marks for `name`, and leaves the rest alone."""
    page = page or PAGE
    begin, end = f"<!-- bench:{name} -->\n", f"<!-- /bench:{name} -->"
    before = page.read_text("utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    assert pattern.search(before), f"{page.name} has no place for {name}"
    after = pattern.sub(lambda _: begin + text + end, before, count=1)
    page.write_text(after, "utf-8")
