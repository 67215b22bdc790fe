"""Draws plots as SVG text: axes, lines, columns. Knows nothing of load runs.

Colours are classes (`s1` … `s5`), so that the page's style says them, for light and
dark. A plot is as wide as a phone and may be scaled up.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

from msgspec import Struct

WIDTH, HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 10, 12, 26
_ROOM_X = WIDTH - _LEFT - _RIGHT
_ROOM_Y = HEIGHT - _TOP - _BOTTOM

Point = tuple[float, float]


class Line(Struct, frozen=True, kw_only=True):
    """One line of a plot.

    Attributes:
        name: For the legend; empty for none.
        colour: The class of its colour.
        points: In the plot's units, in order of x.
    """

    name: str = ""
    colour: str
    points: list[Point]


class Axis(Struct, frozen=True, kw_only=True):
    """One axis.

    Attributes:
        end: The value at its end; it begins at 0.
        ticks: Values with what is written there.
    """

    end: float
    ticks: list[tuple[float, str]]


def axis(largest: float, write: Callable[[float], str]) -> Axis:
    """Makes an axis from 0 with round ticks.

    Args:
        largest: What has to fit.
        write: How a value is written.
    """
    step = _round_up(max(largest, 1e-6) / 4)
    end = step * max(1, math.ceil(largest / step - 1e-9))
    ticks = [
        (place * step, write(place * step)) for place in range(round(end / step) + 1)
    ]
    return Axis(end=end, ticks=ticks)


def plot(
    label: str, x: Axis, y: Axis, content: str, legend: Sequence[Line] = ()
) -> str:
    """Puts axes around content.

    Args:
        label: What it shows, for who can't see it.
        x: Below.
        y: At the left.
        content: What `line` and `columns` gave.
        legend: Lines that have names.
    """
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
    ]
    for value, text in y.ticks:
        at = _y(value, y)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}"'
            f' y2="{at:.1f}"/><text class="tick end" x="{_LEFT - 6}"'
            f' y="{at + 4:.1f}">{escape(text)}</text>'
        )
    for value, text in x.ticks:
        share = value / x.end
        anchor = " end" if share > 0.95 else " middle" if share > 0.05 else ""
        parts.append(
            f'<text class="tick{anchor}" x="{_x(value, x):.1f}"'
            f' y="{HEIGHT - 8}">{escape(text)}</text>'
        )
    parts.append(content)
    at = _LEFT + 8
    for named in legend:
        parts.append(
            f'<line class="{named.colour}" x1="{at}" x2="{at + 14}" y1="{_TOP + 2}"'
            f' y2="{_TOP + 2}"/><text class="name" x="{at + 18}"'
            f' y="{_TOP + 6}">{escape(named.name)}</text>'
        )
        at += 30 + 7 * len(named.name)
    return "".join(parts) + "</svg>"


def line(shown: Line, x: Axis, y: Axis) -> str:
    """Draws a line; a single point as a dot."""
    if len(shown.points) == 1:
        ((px, py),) = shown.points
        return (
            f'<circle class="{shown.colour}" cx="{_x(px, x):.1f}"'
            f' cy="{_y(py, y):.1f}" r="2.5"/>'
        )
    path = " ".join(f"{_x(px, x):.1f},{_y(py, y):.1f}" for px, py in shown.points)
    return f'<polyline class="{shown.colour}" points="{path}"/>'


def columns(
    stacks: Sequence[Sequence[tuple[str, float]]], width: float, x: Axis, y: Axis
) -> str:
    """Draws stacked columns side by side from 0 on.

    Args:
        stacks: For each column its pieces from below: colour and size.
        width: Of a column in units of x.
        x: Below.
        y: At the left.
    """
    parts: list[str] = []
    for place, stack in enumerate(stacks):
        left = _x(place * width, x)
        wide = max(0.5, _x((place + 1) * width, x) - left - 0.6)
        below = 0.0
        for colour, size in stack:
            if size:
                top = _y(below + size, y)
                high = _y(below, y) - top
                parts.append(
                    f'<rect class="{colour}" x="{left:.1f}" y="{top:.1f}"'
                    f' width="{wide:.1f}" height="{high:.1f}"/>'
                )
                below += size
    return "".join(parts)


def hints(texts: Sequence[str], width: float, x: Axis) -> str:
    """Lays an invisible column over each stretch, with a text to point at."""
    parts: list[str] = []
    for place, text in enumerate(texts):
        left = _x(place * width, x)
        wide = _x((place + 1) * width, x) - left
        parts.append(
            f'<rect class="hint" x="{left:.1f}" y="{_TOP}" width="{wide:.1f}"'
            f' height="{_ROOM_Y}"><title>{escape(text)}</title></rect>'
        )
    return "".join(parts)


def _x(value: float, scale: Axis) -> float:
    return _LEFT + _ROOM_X * min(value / scale.end, 1.0)


def _y(value: float, scale: Axis) -> float:
    return HEIGHT - _BOTTOM - _ROOM_Y * min(value / scale.end, 1.0)


def _round_up(value: float) -> float:
    """Returns the next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(
        factor * power
        for factor in (1, 2, 2.5, 5, 10)
        if factor * power >= value * 0.999
    )
