"""The plots of a report: how times are spread, and what happened when."""

import math
from collections.abc import Callable, Sequence

from client_demo.load.counted import counted
from client_demo.load.report import Times
from client_demo.load.series import Bucket, Series
from client_demo.load.sketch import quantile
from client_demo.load.svg import Axis, Line, axis, columns, hints, line, plot

Write = Callable[[float], str]
_NINES = [
    (0.0, "0"), (50.0, "50"), (90.0, "90"), (99.0, "99"), (99.9, "99.9"),
    (99.99, "99.99"), (99.999, "99.999"),
]  # fmt: skip
STATUS_COLOURS = {
    "completed": "s1", "interrupted": "s3", "incomplete": "s5", "failed": "s4",
}  # fmt: skip


def percentiles(name: str, times: Times) -> str:
    """Draws a measure by percentile; each step to the right has a tenth left."""
    points = [(_tail(share), value) for share, value in times.curve]
    end = max(points[-1][0], _tail(90.0))
    ticks = [(_tail(share), text) for share, text in _NINES if _tail(share) <= end]
    x = Axis(end=end, ticks=ticks)
    y = axis(max(value for _, value in points), milliseconds)
    fields = times.fields
    label = (
        f"{name} by percentile: median {milliseconds(fields['p50'])},"
        f" 99th {milliseconds(fields['p99'])}, largest {milliseconds(fields['max'])}"
    )
    return plot(label, x, y, line(Line(colour="s1", points=points), x, y))


def throughput(series: Series) -> str:
    """Draws the tokens that came each second."""
    rates = [bucket.tokens / series.width_seconds for bucket in series.buckets]
    texts = [f"{counted(rate, 'token')} a second" for rate in rates]
    return _over_time(
        "Tokens a second", series, [Line(colour="s1", points=_steps(rates, series))],
        texts, plain,
    )  # fmt: skip


def first_tokens(series: Series) -> str:
    """Draws the time to the first token as it went."""
    halves: list[tuple[float, float]] = []
    tails: list[tuple[float, float]] = []
    texts: list[str] = []
    for place, bucket in enumerate(series.buckets):
        if not bucket.ttft_ms:
            texts.append("nothing began")
            continue
        middle = (place + 0.5) * series.width_seconds
        half, tail = quantile(bucket.ttft_ms, 0.5), quantile(bucket.ttft_ms, 0.99)
        halves.append((middle, half))
        tails.append((middle, tail))
        texts.append(f"p50 {milliseconds(half)}, p99 {milliseconds(tail)}")
    lines = [
        Line(name="p99", colour="s3", points=tails),
        Line(name="p50", colour="s1", points=halves),
    ]
    return _over_time("Time to first token", series, lines, texts, milliseconds)


def users(series: Series) -> str:
    """Draws how many users were at it."""
    numbers = [float(bucket.users) for bucket in series.buckets]
    texts = [counted(number, "user") for number in numbers]
    return _over_time(
        "Users", series, [Line(colour="s2", points=_steps(numbers, series))], texts,
        plain,
    )  # fmt: skip


def statuses(series: Series) -> str:
    """Draws how turns ended, and errors, in each stretch of time."""
    stacks = [
        [
            *((colour, float(bucket.statuses.get(status, 0)))
              for status, colour in STATUS_COLOURS.items()),
            ("s6", float(bucket.errors)),
        ]
        for bucket in series.buckets
    ]  # fmt: skip
    y = axis(max((sum(n for _, n in stack) for stack in stacks), default=1), plain)
    x = _time_axis(series)
    content = columns(stacks, series.width_seconds, x, y)
    content += hints(
        [_ends(bucket) for bucket in series.buckets], series.width_seconds, x
    )
    return plot("Turns that ended, by how, and errors", x, y, content)


def milliseconds(value: float) -> str:
    """Writes a time."""
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"


def plain(value: float) -> str:
    """Writes a number."""
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def _over_time(
    label: str, series: Series, lines: Sequence[Line], texts: list[str], write: Write
) -> str:
    x = _time_axis(series)
    largest = max((value for one in lines for _, value in one.points), default=1)
    y = axis(largest, write)
    content = "".join(line(one, x, y) for one in lines if one.points)
    times = [
        f"{place * series.width_seconds:g} s: {t}" for place, t in enumerate(texts)
    ]
    content += hints(times, series.width_seconds, x)
    legend = [one for one in lines if one.name]
    return plot(f"{label} over time", x, y, content, legend)


def _time_axis(series: Series) -> Axis:
    end = max(len(series.buckets), 1) * series.width_seconds
    whole = axis(end, lambda value: f"{value:g} s")
    ticks = [tick for tick in whole.ticks if tick[0] <= end]
    return Axis(end=end, ticks=ticks)


def _steps(values: Sequence[float], series: Series) -> list[tuple[float, float]]:
    return [
        ((place + 0.5) * series.width_seconds, value)
        for place, value in enumerate(values)
    ]


def _ends(bucket: Bucket) -> str:
    found = [f"{number} {status}" for status, number in bucket.statuses.items()]
    if bucket.errors:
        found.append(counted(bucket.errors, "error"))
    return ", ".join(found) or "nothing ended"


def _tail(share: float) -> float:
    return -math.log10(max(1 - share / 100, 1e-9))
