"""The summary in the terminal."""

from rich.console import Console
from rich.table import Table

from client_demo.load.counted import counted
from client_demo.load.figures import COUNTED, MEASURES
from client_demo.load.plain import plain
from client_demo.load.report import Report, Round
from client_demo.load.spread import spreads

_FIELDS = ("count", "p50", "p90", "p99", "p999", "max")
_VERDICTS = {
    "fine": "[green]fine[/]: every threshold held, and the oracle found nothing",
    "thresholds": "[red]a threshold is broken[/]",
    "unasked": "[red]nobody could ask anything[/]",
    "violations": "[red bold]the oracle found violations of the protocol[/]",
}


def show(report: Report, console: Console) -> None:
    """Prints what a run found."""
    overall = report.overall
    server = f"{report.server.name} {report.server.version}"
    title = plain(report.scenario.title)
    console.print(f"[bold]{title}[/] · {plain(report.url)} · {plain(server)}")
    console.print(_times(overall))
    if len(report.rounds) > 1:
        console.print(_rounds(report))
    console.print(_totals(overall))
    for name in COUNTED:
        codes = overall.counted[name]
        if codes:
            listed = ", ".join(f"{number:,} {code}" for code, number in codes.items())
            console.print(f"[bold]{name}[/]: {plain(listed)}", highlight=False)
    for judged in report.thresholds:
        mark = "[green]held[/]  " if judged.held else "[red]broken[/]"
        value = "nothing measured" if judged.value is None else f"{judged.value:g}"
        threshold = plain(judged.threshold)
        console.print(f"{mark} {threshold} ({value})", highlight=False)
    for violation in report.violations[:20]:
        at = f" at {violation.seq}" if violation.seq is not None else ""
        where = plain(f"{violation.conversation}{at}: {violation.what}")
        console.print(f"[red]{violation.kind}[/] in {where}", highlight=False)
        if violation.recording:
            frames = plain(violation.recording)
            console.print(f"       frames: {frames}", highlight=False)
    for note in report.notes:
        console.print(f"[yellow]note[/]: {plain(note)}", highlight=False)
    console.print(_VERDICTS[report.verdict], highlight=False)


def _times(overall: Round) -> Table:
    table = Table("ms", *_FIELDS, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for measure in MEASURES:
        times = overall.times.get(measure)
        if times is not None and times.fields["count"]:
            fields = times.fields
            table.add_row(
                measure,
                f"{fields['count']:,.0f}",
                *(number(fields[field]) for field in _FIELDS[1:]),
            )
    return table


def _rounds(report: Report) -> Table:
    table = Table("ms", box=None, header_style="bold")
    for place in range(len(report.rounds)):
        table.add_column(f"round {place + 1}", justify="right")
    table.add_column("spread", justify="right")
    for spread in spreads(report):
        table.add_row(
            spread.name, *map(number, spread.values), f"{spread.percent:.0f} %"
        )
    return table


def _totals(overall: Round) -> str:
    figures = overall.figures
    return (
        f"{counted(figures['users'], 'user')},"
        f" {counted(figures['conversations'], 'conversation')}"
        f" ({figures['reread']:,.0f} read again),"
        f" {counted(figures['turns'], 'message')},"
        f" {counted(figures['tokens'], 'token')} in {overall.seconds:.1f} s"
        f" ({figures['tokens.per_second']:,.0f} a second); this end was"
        f" {figures['cpu.mean']:.0f} % busy, {figures['cpu.max']:.0f} % at most"
    )


def number(value: float) -> str:
    """Writes milliseconds with three digits that say something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
