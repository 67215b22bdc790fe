"""The report as one HTML file: no script, no request, well-formed XML too."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

import msgspec

from client_demo.load import plots
from client_demo.load.figures import COUNTED, MEASURES, TOTALS
from client_demo.load.report import Report, Round
from client_demo.load.spread import spreads
from client_demo.load.summary import number
from client_demo.load.tally import PromptTime

_STYLE = Path(__file__).with_name("page.css")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_VERDICTS = {
    "fine": ("good", "Fine: every threshold held, the oracle found nothing."),
    "thresholds": ("bad", "A threshold is broken."),
    "unasked": ("bad", "Nobody could ask anything."),
    "violations": ("bad", "The oracle found violations of the protocol."),
}
_TIME_FIELDS = ("p50", "p90", "p99", "p999", "max")


def page(report: Report) -> str:
    """Returns the whole file."""
    title = escape(report.scenario.title)
    colour, verdict = _VERDICTS[report.verdict]
    body = [
        f"<h1>{title}</h1>",
        f"<p>{escape(report.scenario.description)}</p>",
        f'<p class="verdict {colour}">{verdict}</p>',
        f'<p class="soft">{escape(_where(report))}</p>',
        *(f'<p class="note">{escape(note)}</p>' for note in report.notes),
        _thresholds(report),
        _violations(report),
        "<h2>Times</h2>",
        _times(report.overall),
        _rounds(report),
        _prompts(report),
        _curves(report.overall),
        _course(report),
        "<h2>Counts</h2>",
        _counts(report.overall),
        "<h2>The scenario</h2>",
        f"<details><summary>As it was run</summary><pre>{_scenario(report)}</pre></details>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{title} · load report</title>"
        f"<style>{escape(_STYLE.read_text(encoding='utf-8'), quote=False)}</style>"
        f"</head><body>{''.join(body)}</body></html>\n"
    )


def _where(report: Report) -> str:
    figures = report.overall.figures
    rounds = f" in {len(report.rounds)} rounds" if len(report.rounds) > 1 else ""
    return (
        f"{report.started_at} · {report.url} · {report.server.name}"
        f" {report.server.version} · {report.overall.seconds:.1f} s{rounds} · the load"
        f" tester: {report.processes} process{'es'[: 2 * (report.processes > 1)]},"
        f" {figures['cpu.mean']:.0f} % busy, {figures['cpu.max']:.0f} % at most"
    )


def _thresholds(report: Report) -> str:
    if not report.thresholds:
        return ""
    rows = [
        [
            escape(one.threshold),
            "nothing measured" if one.value is None else f"{one.value:,.4g}",
            '<span class="good">held</span>' if one.held
            else '<span class="bad">broken</span>',
        ]
        for one in report.thresholds
    ]  # fmt: skip
    return "<h2>Thresholds</h2>" + _table(["threshold", "value", ""], rows, left=1)


def _violations(report: Report) -> str:
    if not report.violations:
        return ""
    rows = [
        [
            escape(one.kind),
            "" if one.seq is None else str(one.seq),
            escape(one.what),
            escape(one.conversation),
            escape(one.recording or ""),
        ]
        for one in report.violations
    ]
    head = ["kind", "number", "what", "conversation", "frames"]
    return "<h2>Violations</h2>" + _table(head, rows, left=5)


def _times(overall: Round) -> str:
    rows = [
        [
            measure,
            f"{times.fields['count']:,.0f}",
            *(number(times.fields[field]) for field in _TIME_FIELDS),
        ]
        for measure, times in overall.times.items()
        if times.fields["count"]
    ]
    return _table(["ms", "count", *_TIME_FIELDS], rows)


def _rounds(report: Report) -> str:
    rows = [
        [one.name, *map(number, one.values), f"{one.percent:.0f} %"]
        for one in spreads(report)
    ]
    if not rows:
        return ""
    names = [f"round {place + 1}" for place in range(len(report.rounds))]
    return "<h2>Rounds</h2>" + _table(["ms", *names, "spread"], rows)


def _prompts(report: Report) -> str:
    if not any(report.prompts):
        return ""
    by_name: dict[str, list[list[PromptTime]]] = {}
    for place, times in enumerate(report.prompts):
        for time in times:
            found = by_name.setdefault(time.prompt, [[] for _ in report.prompts])
            found[place].append(time)
    rows: list[list[str]] = []
    for name, rounds in by_name.items():
        every = [time for times in rounds for time in times]
        rows.append(
            [
                escape(name),
                escape(every[0].language),
                f"{every[0].input_tokens:,}",
                f"{every[0].output_tokens:,}",
                *(_mean(time.ttft_ms for time in times) for times in rounds),
                *(_mean(time.tpot_ms for time in times) for times in rounds),
                ", ".join(sorted({time.status for time in every})),
            ]
        )
    numbers = range(1, len(report.prompts) + 1)
    head = [
        "prompt", "language", "tokens in", "out",
        *(f"ttft {place}" for place in numbers), *(f"tpot {place}" for place in numbers),
        "",
    ]  # fmt: skip
    return "<h2>Prompts</h2>" + _table(head, rows, left=2, last=1)


def _curves(overall: Round) -> str:
    figures = [
        _figure(measure, MEASURES[measure], plots.percentiles(measure, times))
        for measure, times in overall.times.items()
        if times.fields["count"] > 1
    ]
    return (
        "<h2>How times are spread</h2><p class='soft'>By percentile: each step to the"
        " right has a tenth of what is left.</p>" + _grid(figures)
    )


def _course(report: Report) -> str:
    series = report.overall.series
    key = "".join(
        f'<span class="key k{colour[1]}"><span>{name}</span></span>'
        for name, colour in [*plots.STATUS_COLOURS.items(), ("errors", "s6")]
    )
    said = "" if len(report.rounds) < 2 else " All rounds lie on each other."
    figures = [
        _figure(
            "Tokens", f"Pieces of answer a second.{said}", plots.throughput(series)
        ),
        _figure("First tokens", "Of answers that began.", plots.first_tokens(series)),
        _figure("Ends of turns", key, plots.statuses(series), escaped=True),
        _figure("Users", "At it at the same time.", plots.users(series)),
    ]
    return "<h2>What happened when</h2>" + _grid(figures)


def _counts(overall: Round) -> str:
    totals = [
        [
            name,
            f"{overall.figures[name]:,.0f}",
            f'<span class="soft">{_prose(said)}</span>',
        ]
        for name, said in TOTALS.items()
    ]
    parts = [_table(["", "", ""], totals, last=1)]
    for name, codes in overall.counted.items():
        if codes:
            rows = [[escape(code), f"{count:,}"] for code, count in codes.items()]
            said = _prose(COUNTED[name])
            parts.append(f"<h3>{name}</h3><p class='soft'>{said}</p>")
            parts.append(_table(["code", "count"], rows))
    return "".join(parts)


def _scenario(report: Report) -> str:
    encoded = msgspec.json.encode(report.scenario)
    return escape(msgspec.json.format(encoded, indent=1).decode())


def _prose(text: str) -> str:
    """Escapes a text, with `code` in it as code."""
    parts = escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if place % 2 else part
        for place, part in enumerate(parts)
    )


def _mean(values: Iterable[float | None]) -> str:
    found = [value for value in values if value is not None]
    return number(sum(found) / len(found)) if found else ""


def _figure(name: str, said: str, drawn: str, *, escaped: bool = False) -> str:
    text = said if escaped else _prose(said)
    return f"<figure><h3>{escape(name)}</h3>{drawn}<figcaption>{text}</figcaption></figure>"


def _grid(figures: list[str]) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'


def _table(
    head: list[str], rows: list[list[str]], *, left: int = 1, last: int = 0
) -> str:
    """Makes a table of cells that are escaped already.

    Args:
        head: Above the columns.
        rows: The cells.
        left: So many columns from the left are text, the others numbers.
        last: So many from the right are text too.
    """
    text = {*range(left), *range(len(head) - last, len(head))}

    def cells(kind: str, row: list[str]) -> str:
        return "".join(
            f"<{kind}>{cell}</{kind}>" if place in text
            else f'<{kind} class="n">{cell}</{kind}>'
            for place, cell in enumerate(row)
        )  # fmt: skip

    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", head)}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )
