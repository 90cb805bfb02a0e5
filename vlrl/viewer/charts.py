"""Charts: inline SVG for the page, which takes its colours from the page's style, and PNG for a README.

Hovering needs no script: every column of a chart is a <g class="hit"> with a <title>.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Literal

Point = tuple[float, float | None]
"""(step, value); a None value breaks the line."""

NOTHING = "\N{EN DASH}"
"""Stands where there is no number."""

MAX_COLUMNS = 160
"""Points drawn per line or bars per chart; longer runs are averaged down to this many."""

MARGIN = (10, 8, 24, 46)
"""Top, right, bottom and left of the plot, in SVG units (about pixels)."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: `color` is an index into the page's palette, `mark` how it is drawn."""

    name: str
    points: Sequence[Point]
    color: int = 0
    mark: Literal["line", "faint", "dots", "rings"] = "line"


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's rectangle and the numbers it spans."""

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    margin: tuple[int, int, int, int] = field(default=MARGIN)

    def px(self, x: float) -> float:
        """Horizontal SVG coordinate of a step."""
        left, right = self.margin[3], self.width - self.margin[1]
        return round(left + (x - self.x[0]) / (self.x[1] - self.x[0]) * (right - left), 1)

    def py(self, y: float) -> float:
        """Vertical SVG coordinate of a value."""
        top, bottom = self.margin[0], self.height - self.margin[2]
        return round(bottom - (y - self.y[0]) / (self.y[1] - self.y[0]) * (bottom - top), 1)


def line_chart(
    series: Sequence[Series],
    *,
    width: int = 560,
    height: int = 220,
    y_range: tuple[float, float] | None = None,
    target: float | None = None,
) -> str:
    """Lines over steps as an <svg>.

    Args:
        series: drawn in this order; their names appear on hovering.
        width: of the view box; the page scales it.
        height: of the view box.
        y_range: fixed range of values; by default that of the data.
        target: value of a dashed line.
    """
    thinned = [Series(s.name, thin(s.points), s.color, s.mark) for s in series]
    values = [y for s in thinned for _, y in s.points if y is not None] + ([] if target is None else [target])
    steps = [x for s in thinned for x, _ in s.points]
    frame = Frame(width, height, _padded(steps, 0.0), y_range or _padded(values, 0.06))
    body = [_axes(frame)]
    if target is not None:
        y = frame.py(target)
        left, right = frame.margin[3], width - frame.margin[1]
        body.append(f'<line class="target" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
    body += [_draw(s, frame) for s in thinned]
    body.append(_hits(thinned, frame))
    return _svg(width, height, body, ", ".join(s.name for s in series))


def stacked_chart(
    steps: Sequence[float],
    parts: Sequence[tuple[str, Sequence[float]]],
    *,
    width: int = 560,
    height: int = 220,
) -> str:
    """Bars of parts on top of each other as an <svg>; each part has one value per step."""
    columns = [thin(list(zip(steps, values, strict=True))) for _, values in parts]
    xs = [x for x, _ in columns[0]]
    totals = [sum(column[i][1] or 0.0 for column in columns) for i in range(len(xs))]
    gap = (xs[-1] - xs[0]) / (len(xs) - 1) if len(xs) > 1 else 1.0
    frame = Frame(width, height, (xs[0] - gap / 2, xs[-1] + gap / 2), (0.0, max(*totals, 1e-9) * 1.05))
    bar = max(0.5, 0.86 * (frame.px(xs[0] + gap) - frame.px(xs[0])))
    body = [_axes(frame)]
    for i, x in enumerate(xs):
        base, rects, words = 0.0, [], [f"step {x:g}: {totals[i]:.2f} s"]
        for color, ((name, _), column) in enumerate(zip(parts, columns, strict=True)):
            value = column[i][1] or 0.0
            top, bottom = frame.py(base + value), frame.py(base)
            left = round(frame.px(x) - bar / 2, 1)
            size = f'width="{bar:.1f}" height="{bottom - top:.1f}"'
            rects.append(f'<rect class="f{color}" x="{left}" y="{top}" {size}/>')
            words.append(f"{name} {value:.2f} s")
            base += value
        body.append(f'<g class="bar">{"".join(rects)}<title>{escape(", ".join(words))}</title></g>')
    return _svg(width, height, body, "seconds per step")


def thin(points: Sequence[Point], limit: int = MAX_COLUMNS) -> list[Point]:
    """At most `limit` points: means of equally many neighbours; the x is that of the first of them."""
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
    """About `count` round numbers (1, 2 or 5 times a power of ten) within [low, high]."""
    raw = (high - low) / max(1, count)
    power: float = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.7)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float | None, digits: int = 3) -> str:
    """A number for people: 3 significant digits, thin exponents only where they are needed."""
    if value is None:
        return NOTHING
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def _padded(values: Sequence[float], pad: float) -> tuple[float, float]:
    """Range of the values, widened by a share; never empty."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high - low <= 1e-12 * max(1.0, abs(high)):
        half = abs(high) / 2 or 0.5
        return low - half, high + half
    # A quantity that is never negative keeps its axis at or above zero.
    bottom = low - pad * (high - low)
    return (0.0 if low >= 0 > bottom else bottom), high + pad * (high - low)


def _svg(width: int, height: int, body: Sequence[str], label: str) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
    return head + "".join(body) + "</svg>"


def _axes(frame: Frame) -> str:
    top, right, bottom, left = frame.margin
    floor, end = frame.height - bottom, frame.width - right
    out = []
    for y in ticks(*frame.y, count=max(3, (floor - top) // 44)):
        py = frame.py(y)
        out.append(f'<line class="rule" x1="{left}" x2="{end}" y1="{py}" y2="{py}"/>')
        out.append(f'<text class="tick" x="{left - 7}" y="{py + 3.5}" text-anchor="end">{short(y)}</text>')
    for x in ticks(*frame.x, count=max(2, (end - left) // 90)):
        if x == int(x):  # steps are whole
            px = frame.px(x)
            out.append(f'<text class="tick" x="{px}" y="{floor + 16}" text-anchor="middle">{x:g}</text>')
    return "".join(out)


def _draw(series: Series, frame: Frame) -> str:
    known = [(frame.px(x), None if y is None else frame.py(y)) for x, y in series.points]
    if series.mark in ("dots", "rings"):
        path = " ".join(f"{x},{y}" for x, y in known if y is not None)
        link = f'<polyline class="s{series.color} faint" points="{path}"/>'
        kind = f"f{series.color}" if series.mark == "dots" else f"s{series.color} ring"
        circles = [f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"/>' for x, y in known if y is not None]
        return link + "".join(circles)
    kind = f"s{series.color}" + (" faint" if series.mark == "faint" else "")
    out = []
    for gap, run in groupby(known, key=lambda point: point[1] is None):
        if not gap:
            points = [f"{x},{y}" for x, y in run]
            if len(points) == 1:
                x, y = points[0].split(",")
                out.append(f'<circle class="f{series.color}" cx="{x}" cy="{y}" r="2"/>')
            out.append(f'<polyline class="{kind}" points="{" ".join(points)}"/>')
    return "".join(out)


def _hits(series: Sequence[Series], frame: Frame) -> str:
    """Invisible columns that show a guide line and the values when hovered."""
    values: dict[float, list[str]] = {}
    for s in series:
        for x, y in s.points:
            values.setdefault(x, []).append(f"{s.name} {short(y, 4)}")
    xs = sorted(values)
    top, floor = frame.margin[0], frame.height - frame.margin[2]
    out = []
    for i, x in enumerate(xs):
        px = frame.px(x)
        left = px if i == 0 else (px + frame.px(xs[i - 1])) / 2
        right = px if i == len(xs) - 1 else (px + frame.px(xs[i + 1])) / 2
        box = f'x="{left - 1:.1f}" y="{top}" width="{right - left + 2:.1f}" height="{floor - top}"'
        line = f'<line x1="{px}" x2="{px}" y1="{top}" y2="{floor}"/>'
        words = escape(f"step {x:g}: " + ", ".join(values[x]))
        out.append(f'<g class="hit"><rect {box}/>{line}<title>{words}</title></g>')
    return "".join(out)


def draw_learning_curve(
    path: Path, reward: Sequence[Point], window: int, heldout: Sequence[Series], target: float | None
) -> None:
    """Write reward and held-out accuracy side by side as a PNG on white."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    nan = float("nan")
    known = [(x, nan if y is None else y) for x, y in reward]
    smoothed = [(x, nan if y is None else y) for x, y in smooth(reward, window)]
    if known:
        left.plot(*zip(*known, strict=True), color="#3b6fd4", alpha=0.3, linewidth=1)
        left.plot(*zip(*smoothed, strict=True), color="#3b6fd4", linewidth=2)
    left.set(title="Reward in training", xlabel="step", ylabel=f"mean reward (bold: last {window} steps)")
    for series, color, fill in zip(heldout, ("#3b6fd4", "#d9782d"), ("#3b6fd4", "white"), strict=False):
        points = [(x, y) for x, y in series.points if y is not None]
        if points:
            right.plot(*zip(*points, strict=True), "o-", color=color, markerfacecolor=fill, label=series.name)
    if target is not None:
        right.axhline(target, color="#777", linestyle="--", linewidth=1, label=f"target {target:g}")
    right.set(title="Held-out accuracy", xlabel="step", ylim=(0, 1.02))
    if right.get_legend_handles_labels()[0]:
        right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, metadata={"Software": None})
