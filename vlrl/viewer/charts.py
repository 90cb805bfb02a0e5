"""Charts: HTML with inline SVG for the page, which gives them colours and size.

Only shapes are SVG, stretched to the page's width; labels are HTML, so that they keep their size on a phone.
A column's values show on hovering, on a tap, and by keyboard: the columns are one group of radio buttons,
which a browser makes a single tab stop that the arrow keys go through. No script is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Literal

Point = tuple[float, float | None]
"""(step, value); a None value breaks the line."""

NOTHING = "\N{EN DASH}"
"""Stands where there is not a number."""

MAX_COLUMNS = 160
"""Points drawn per line or bars per chart; longer runs are averaged down to this many."""

SPAN = 1000
"""Units of the plot's view box, across and down."""

TICK_CHAR_PX = 6.3
"""Width of a digit of a tick's label, see `.tick` in style.css.j2."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: `color` is an index into the page's palette, `mark` how it is drawn."""

    name: str
    points: Sequence[Point]
    color: int = 0
    mark: Literal["line", "faint", "dots", "rings"] = "line"


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The numbers that the plot's rectangle spans, and its height on the page in pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int

    def px(self, x: float) -> float:
        """Horizontal coordinate of a step, in the plot's units."""
        return round((x - self.x[0]) / (self.x[1] - self.x[0]) * SPAN, 1)

    def py(self, y: float) -> float:
        """Vertical coordinate of a value, in the plot's units."""
        return round((self.y[1] - y) / (self.y[1] - self.y[0]) * SPAN, 1)


def line_chart(
    series: Sequence[Series],
    *,
    height: int = 220,
    y_range: tuple[float, float] | None = None,
    target: float | None = None,
) -> str:
    """Lines over steps as a <div class="chart">.

    Args:
        series: drawn in this order; their names appear beside the values.
        height: in pixels; the width is the page's.
        y_range: fixed range of values; by default that of the data.
        target: value of a dashed line.
    """
    thinned = [Series(s.name, thin(s.points), s.color, s.mark) for s in series]
    values = [y for s in thinned for _, y in s.points if y is not None] + ([] if target is None else [target])
    steps = [x for s in thinned for x, _ in s.points]
    frame = ChartFrame(_padded(steps, 0.0), y_range or _padded(values, 0.06), height)
    body = [] if target is None else [_line("target", [(0, frame.py(target)), (SPAN, frame.py(target))])]
    body += [_draw(s, frame) for s in thinned]
    labels: dict[float, list[str]] = {}
    for s in thinned:
        for x, y in s.points:
            labels.setdefault(x, []).append(f"{s.name} {short(y, 4)}")
    words = [(x, f"step {x:g}: " + ", ".join(labels[x])) for x in sorted(labels)]
    return _chart(frame, body, words, ", ".join(s.name for s in series))


def stacked_chart(
    steps: Sequence[float], parts: Sequence[tuple[str, Sequence[float]]], *, height: int = 220
) -> str:
    """Bars of parts on top of each other as a <div class="chart">; each part has one value per step, in s."""
    columns = [thin(list(zip(steps, values, strict=True))) for _, values in parts]
    xs = [x for x, _ in columns[0]]
    totals = [sum(column[i][1] or 0.0 for column in columns) for i in range(len(xs))]
    gap = (xs[-1] - xs[0]) / (len(xs) - 1) if len(xs) > 1 else 1.0
    frame = ChartFrame((xs[0] - gap / 2, xs[-1] + gap / 2), (0.0, max(*totals, 1e-9) * 1.05), height)
    bar = max(0.5, 0.86 * (frame.px(xs[0] + gap) - frame.px(xs[0])))
    body, words = [], []
    for i, x in enumerate(xs):
        base, labels = 0.0, [f"step {x:g}: {totals[i]:.2f} s"]
        for color, ((name, _), column) in enumerate(zip(parts, columns, strict=True)):
            value = column[i][1] or 0.0
            top, bottom = frame.py(base + value), frame.py(base)
            left = round(frame.px(x) - bar / 2, 1)
            size = f'width="{bar:.1f}" height="{bottom - top:.1f}"'
            body.append(f'<rect class="f{color}" x="{left}" y="{top}" {size}/>')
            labels.append(f"{name} {value:.2f} s")
            base += value
        words.append((x, ", ".join(labels)))
    return _chart(frame, body, words, "seconds per step")


def thin(points: Sequence[Point], limit: int = MAX_COLUMNS) -> list[Point]:
    """Average a line down to at most `limit` points: means of equally many neighbours, at the first x."""
    if len(points) <= limit:
        return list(points)
    size = math.ceil(len(points) / limit)
    return [
        (points[i][0], mean([y for _, y in points[i : i + size] if y is not None]))
        for i in range(0, len(points), size)
    ]


def smooth(points: Sequence[Point], window: int) -> list[Point]:
    """Mean of the last `window` values at each step: it looks back only, and so never shows the future."""
    return [
        (x, mean([y for _, y in points[max(0, i - window + 1) : i + 1] if y is not None]))
        for i, (x, _) in enumerate(points)
    ]


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    return sum(values) / len(values) if values else None


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) within [low, high], about `count` of them."""
    raw = (high - low) / max(1, count)
    power: float = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.7)
    first = math.ceil(low / step - 1e-9)
    # The product of a round step has digits of its own at its end: 3 * 0.1 is not 0.3.
    return [float(f"{i * step:.12g}") for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float | None, digits: int = 3) -> str:
    """A number for people: 3 significant digits, thin exponents only where they are needed."""
    if value is None:
        return NOTHING
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if abs(value) >= 1000:
        return f"{value:,.{max(0, digits - 4)}f}"
    return f"{value:.{digits}g}"


def tick_labels(values: Sequence[float]) -> list[str]:
    """Labels of rising ticks, with as many digits as make them differ; 3 at least."""
    for digits in range(3, 17):
        labels = [short(value, digits) for value in values]
        if len(set(labels)) == len(labels):
            break
    return labels


def _padded(values: Sequence[float], pad: float) -> tuple[float, float]:
    """Range of the values, widened by a share; never empty."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high - low <= 1e-9 * max(abs(high), abs(low)):
        # Alike but for rounding: around the value, but a quantity that is not negative has no negative axis.
        half = abs(high) / 2
        return (low - half, high + half) if half else (0.0, 1.0)
    bottom = low - pad * (high - low)
    return (0.0 if low >= 0 > bottom else bottom), high + pad * (high - low)


def _chart(frame: ChartFrame, body: Sequence[str], words: Sequence[tuple[float, str]], label: str) -> str:
    """The plot with its axes and columns.

    Args:
        frame: of the plot.
        body: SVG elements, in the plot's units.
        words: (step, text shown for its column), by rising steps.
        label: what the chart shows, for those who do not see it.
    """
    levels = ticks(*frame.y, count=max(3, frame.height // 52))
    rules = [_line("rule", [(0, frame.py(y)), (SPAN, frame.py(y))]) for y in levels]
    labels = tick_labels(levels)
    left = round(max(4, *map(len, labels)) * TICK_CHAR_PX + 12)
    svg = (
        f'<svg viewBox="0 0 {SPAN} {SPAN}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join([*rules, *body])}</svg>"
    )
    beside = [
        f'<span class="tick y" style="top:{_share(frame.py(y))}">{text}</span>'
        for y, text in zip(levels, labels, strict=True)
    ]
    below = [
        f'<span class="tick x" style="left:{_share(frame.px(x))}">{x:g}</span>'
        for x in ticks(*frame.x, count=5)
        if x == int(x)  # steps are whole
    ]
    plot = "".join([svg, *beside, *below, _columns(frame, words, label)])
    return (
        f'<div class="chart" role="group" aria-label="{escape(label)}" '
        f'style="height:{frame.height}px;--left:{left}px"><div class="plot">{plot}</div></div>'
    )


def _share(units: float) -> str:
    return f"{units * 100 / SPAN:.2f}%"


def _line(kind: str, points: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def _dot(kind: str, x: float, y: float) -> str:
    """A round dot in a stretched plot: the round end of a line without length."""
    return f'<path class="dot {kind}" d="M{x} {y}h0"/>'


def _draw(series: Series, frame: ChartFrame) -> str:
    known = [(frame.px(x), None if y is None else frame.py(y)) for x, y in series.points]
    color = f"s{series.color}"
    if series.mark in ("dots", "rings"):
        whole = [(x, y) for x, y in known if y is not None]
        kind = color if series.mark == "dots" else f"{color} ring"
        dots = [_dot(kind, x, y) for x, y in whole]
        if series.mark == "rings":
            dots += [_dot("hole", x, y) for x, y in whole]
        return _line(f"{color} faint", whole) + "".join(dots)
    out = []
    for gap, run in groupby(known, key=lambda point: point[1] is None):
        if not gap:
            points = [(x, y) for x, y in run if y is not None]
            if len(points) == 1:
                out.append(_dot(f"{color} small", *points[0]))
            out.append(_line(color + (" faint" if series.mark == "faint" else ""), points))
    return "".join(out)


def _columns(frame: ChartFrame, words: Sequence[tuple[float, str]], group: str) -> str:
    """Invisible columns that show a guide line and their words: hovered, tapped or reached by arrow keys."""
    at = [frame.px(x) for x, _ in words]
    out = []
    for i, (px, (_, text)) in enumerate(zip(at, words, strict=True)):
        left = 0.0 if i == 0 else (px + at[i - 1]) / 2
        right = SPAN if i == len(at) - 1 else (px + at[i + 1]) / 2
        side = " late" if px > SPAN / 2 else ""
        guide = _share((px - left) / max(right - left, 1e-9) * SPAN)
        place = f"left:{_share(left)};width:{_share(right - left)};--at:{guide}"
        out.append(
            f'<label class="column{side}" style="{place}">'
            f'<input type="radio" name="{escape(group)}"/><span>{escape(text)}</span></label>'
        )
    return "".join(out)
